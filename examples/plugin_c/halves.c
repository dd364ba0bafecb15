/* A strategy in plain C: every block of steps is cut in two, each part is cut again, down to single
 * steps, so a block becomes a binary tree that is made from the top (progressive makes one from the
 * bottom). With cut = 0.5 a block of n steps takes about log2 n rounds; with 0 or 1 a part loses
 * one step at a time, which is BOOT's and consistency's order.
 *
 * Nothing but the C library and mergeplan_plugin.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mergeplan_plugin.h"

/* Describes a failure in the caller's struct and returns its code. */
static int32_t fail(mergeplan_error* error, int32_t code, const char* text) {
  if (error != NULL) {
    error->code = code;
    if (error->text != NULL && error->capacity > 0) {
      (void)snprintf(error->text, error->capacity, "%s", text);
    }
  }
  return code;
}

/* The host has checked the value against kCut, so it is a number in 0..1. */
static int32_t read_cut(const mergeplan_plan_request* request, double* cut,
                        mergeplan_error* error) {
  int32_t k = 0;
  for (k = 0; k < request->parameter_count; ++k) {
    const mergeplan_parameter* parameter = request->parameters[k];
    if (strcmp(parameter->name, "cut") == 0) {
      char* end = NULL;
      *cut = strtod(parameter->value, &end);
      if (end != parameter->value && *end == '\0' && *cut >= 0 && *cut <= 1) return MERGEPLAN_OK;
    }
  }
  return fail(error, MERGEPLAN_INVALID_ARGUMENT, "cut: expected a number from 0 to 1");
}

/* The last step of the cleaner part of [first, last], two steps or more. */
static int32_t cut_after(int32_t first, int32_t last, double cut) {
  const int32_t steps = last - first + 1;
  int32_t cleaner = (int32_t)(cut * steps + 0.5);
  if (cleaner < 1) cleaner = 1;
  if (cleaner > steps - 1) cleaner = steps - 1;
  return first + cleaner - 1;
}

/* Adds all merges inside [first, last] without recursion: with cut = 0 the tree is as deep as the
 * block is long. `pending` has room for as many ranges as the block has steps. */
static int32_t add_block(const mergeplan_plan_sink* sink, int32_t first, int32_t last, double cut,
                         int32_t (*pending)[2], mergeplan_error* error) {
  int32_t count = 0;
  if (first < last) {
    pending[0][0] = first;
    pending[0][1] = last;
    count = 1;
  }
  while (count > 0) {
    const int32_t i = pending[count - 1][0];
    const int32_t j = pending[count - 1][1];
    const int32_t middle = cut_after(i, j, cut);
    const int32_t children[4] = {i, middle, middle + 1, j};
    const int32_t code = sink->add_merge(sink->context, i, j, children, 2, error);
    if (code != MERGEPLAN_OK) return code;
    --count;
    if (i < middle) {
      pending[count][0] = i;
      pending[count][1] = middle;
      ++count;
    }
    if (middle + 1 < j) {
      pending[count][0] = middle + 1;
      pending[count][1] = j;
      ++count;
    }
  }
  return MERGEPLAN_OK;
}

static int32_t plan(const mergeplan_plan_request* request, const mergeplan_planner* planner,
                    const mergeplan_plan_sink* sink, mergeplan_error* error) {
  const int32_t steps = request->teacher_steps;
  const int32_t blocks = request->student_steps;
  int32_t(*pending)[2] = NULL;
  int32_t* ranges = NULL;
  int32_t code = MERGEPLAN_OK;
  int32_t first = 1;
  int32_t k = 0;
  double cut = 0;
  (void)planner;
  code = read_cut(request, &cut, error);
  if (code != MERGEPLAN_OK) return code;
  pending = malloc((size_t)steps * sizeof(*pending));
  ranges = malloc((size_t)blocks * 2 * sizeof(*ranges));
  if (pending == NULL || ranges == NULL) {
    code = fail(error, MERGEPLAN_RESOURCE_EXHAUSTED, "out of memory");
  }
  /* N blocks as even as they can be, borders at floor(k T / N + 0.5). */
  for (k = 0; k < blocks && code == MERGEPLAN_OK; ++k) {
    const int32_t last = (int32_t)((double)(k + 1) * steps / blocks + 0.5);
    ranges[2 * k] = first;
    ranges[2 * k + 1] = last;
    code = add_block(sink, first, last, cut, pending, error);
    first = last + 1;
  }
  if (code == MERGEPLAN_OK) code = sink->set_blocks(sink->context, ranges, blocks, error);
  free(ranges);
  free(pending);
  return code;
}

/* Merge by merge: the plan lists children before their parents. */
static int32_t execute(const mergeplan_execute_request* request, const mergeplan_runtime* runtime,
                       mergeplan_error* error) {
  const mergeplan_plan* plan = request->plan;
  mergeplan_evaluation evaluation = {0};
  int32_t k = 0;
  for (k = 0; k < plan->merge_count; ++k) {
    const mergeplan_merge* merge = plan->merges[k];
    mergeplan_train_result result = {0};
    int32_t code = MERGEPLAN_OK;
    if (runtime->cancelled(runtime->context) != 0) {
      return fail(error, MERGEPLAN_CANCELLED, "stopped between two merges");
    }
    result.struct_size = sizeof(result);
    code = runtime->train_merge(runtime->context, merge->first, merge->last, &result, error);
    if (code != MERGEPLAN_OK) return code;
    runtime->progress(runtime->context, (double)(k + 1) / plan->merge_count, NULL);
  }
  evaluation.struct_size = sizeof(evaluation);
  return runtime->evaluate(runtime->context, &evaluation, error);
}

static const mergeplan_parameter_spec kCut = {
    .struct_size = sizeof(mergeplan_parameter_spec),
    .type = MERGEPLAN_PARAMETER_REAL,
    .name = "cut",
    .default_value = "0.5",
    .help = "where a part is cut, as a share of its steps, from the clean end",
    .has_minimum = 1,
    .has_maximum = 1,
    .minimum = 0,
    .maximum = 1,
};
static const mergeplan_parameter_spec* const kParameters[] = {&kCut};

static const mergeplan_plugin kPlugin = {
    .struct_size = sizeof(mergeplan_plugin),
    .abi_major = MERGEPLAN_ABI_MAJOR,
    .abi_minor = MERGEPLAN_ABI_MINOR,
    .abi_minor_needed = 0,
    .name = "halves",
    .version = "1.0",
    .description = "Cuts the steps in two, and each part again, down to single steps",
    .parameter_count = 1,
    .parameters = kParameters,
    .plan = plan,
    .execute = execute,
};

const mergeplan_plugin* mergeplan_plugin_entry(void) { return &kPlugin; }
