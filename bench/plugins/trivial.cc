// A plugin that does as little as there is to do: its plan is single steps, and execute() calls one
// function of the runtime `calls` times, so that what is measured is the way there and back.
#include "mergeplan_plugin.hpp"

namespace {

using mergeplan_plugin_cpp::Range;

std::int32_t MakePlan(const mergeplan_plan_request* request, const mergeplan_planner* /*planner*/,
                      const mergeplan_plan_sink* sink, mergeplan_error* error) {
  if (request->teacher_steps == 1) {
    const std::int32_t block[] = {1, 1};
    return sink->set_blocks(sink->context, block, 1, error);
  }
  return mergeplan_plugin_cpp::PlanEqualBlocks(
      request, sink, error, [](mergeplan_plugin_cpp::Writer& writer, Range range) {
        std::vector<Range> steps;
        for (std::int32_t t = range.first; t <= range.last; ++t) steps.push_back({t, t});
        writer.Merge(steps);
      });
}

std::int32_t Execute(const mergeplan_execute_request* request, const mergeplan_runtime* runtime,
                     mergeplan_error* error) {
  std::int64_t calls = 0;
  mergeplan_plugin_cpp::FindInteger(request->parameters, request->parameter_count, "calls", &calls);
  const char* what =
      mergeplan_plugin_cpp::FindParameter(request->parameters, request->parameter_count, "what");
  void* context = runtime->context;
  const mergeplan_plan& plan = *request->plan;
  switch (what == nullptr ? ' ' : what[0]) {
    case 'c':  // cancelled
      for (std::int64_t k = 0; k < calls; ++k) runtime->cancelled(context);
      break;
    case 'p':  // progress
      for (std::int64_t k = 0; k < calls; ++k) runtime->progress(context, 0.5, "training");
      break;
    case 'e': {  // evaluate
      mergeplan_evaluation evaluation = {};
      evaluation.struct_size = sizeof(evaluation);
      for (std::int64_t k = 0; k < calls; ++k) runtime->evaluate(context, &evaluation, error);
      break;
    }
    default:
      break;
  }
  // And, as execute() must, every merge once.
  for (std::int32_t k = 0; k < plan.merge_count; ++k) {
    mergeplan_train_result result = {};
    result.struct_size = sizeof(result);
    const std::int32_t code =
        runtime->train_merge(context, plan.merges[k]->first, plan.merges[k]->last, &result, error);
    if (code != MERGEPLAN_OK) return code;
  }
  return MERGEPLAN_OK;
}

const mergeplan_parameter_spec kCalls = {sizeof(mergeplan_parameter_spec),
                                         MERGEPLAN_PARAMETER_INTEGER,
                                         "calls",
                                         "0",
                                         "how often",
                                         /*has_minimum=*/1,
                                         /*has_maximum=*/0,
                                         0,
                                         0};
const mergeplan_parameter_spec kWhat = {sizeof(mergeplan_parameter_spec),
                                        MERGEPLAN_PARAMETER_TEXT,
                                        "what",
                                        "",
                                        "cancelled, progress or evaluate",
                                        0,
                                        0,
                                        0,
                                        0};
const mergeplan_parameter_spec* const kParameters[] = {&kCalls, &kWhat};

const mergeplan_plugin kPlugin = {
    sizeof(mergeplan_plugin),
    MERGEPLAN_ABI_MAJOR,
    MERGEPLAN_ABI_MINOR,
    /*abi_minor_needed=*/0,
    "trivial",
    "1.0",
    "Does as little as there is to do",
    /*teacher_needs=*/0,
    /*parameter_count=*/2,
    /*reserved=*/0,
    kParameters,
    MakePlan,
    Execute,
    /*get_extension=*/nullptr,
};

}  // namespace

const mergeplan_plugin* mergeplan_plugin_entry(void) { return &kPlugin; }
