// A plugin that keeps every rule, and breaks one on demand: the environment variable
// MERGEPLAN_TEST_MUTANT says which.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "mergeplan_plugin.hpp"

namespace {

using mergeplan_plugin_cpp::Fail;
using mergeplan_plugin_cpp::Pairs;
using mergeplan_plugin_cpp::Range;

bool Is(const char* mutant) {
  const char* wanted = std::getenv("MERGEPLAN_TEST_MUTANT");
  return wanted != nullptr && std::strcmp(wanted, mutant) == 0;
}

// Leaves a process behind that holds whatever this one had open, and says which.
void LeaveAProcess() {
  const char* file = std::getenv("MERGEPLAN_TEST_PID_FILE");
  if (file == nullptr) return;
  const pid_t child = ::fork();
  while (child == 0) ::pause();
  if (FILE* out = std::fopen(file, "w"); out != nullptr) {
    std::fprintf(out, "%d", static_cast<int>(child));
    std::fclose(out);
  }
}

struct AtExit {
  ~AtExit() {
    if (Is("crash-at-exit")) std::raise(SIGSEGV);
  }
} g_at_exit;

void Linger() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

// ---- plan

struct Merge {
  Range range;
  std::vector<Range> children;
};

struct Plan {
  std::vector<Merge> merges;
  std::vector<Range> blocks;
};

Range AddHalves(Plan* plan, Range range, bool backwards) {
  if (range.first == range.last) return range;
  // An odd step goes to the cleaner half, or, backwards, to the noisier one.
  const std::int32_t middle = (range.first + range.last - (backwards ? 1 : 0)) / 2;
  const Range left = AddHalves(plan, {range.first, middle}, backwards);
  const Range right = AddHalves(plan, {middle + 1, range.last}, backwards);
  plan->merges.push_back({range, {left, right}});
  return range;
}

struct PlanCall {
  const mergeplan_plan_request* request;
  const mergeplan_planner* planner;
  const mergeplan_plan_sink* sink;
  mergeplan_error* error;

  std::int32_t Add(const Merge& merge) const {
    return sink->add_merge(sink->context, merge.range.first, merge.range.last,
                           Pairs(merge.children), static_cast<std::int32_t>(merge.children.size()),
                           error);
  }
  std::int32_t SetBlocks(const std::vector<Range>& blocks) const {
    return sink->set_blocks(sink->context, Pairs(blocks), static_cast<std::int32_t>(blocks.size()),
                            error);
  }
  std::int32_t Send(const Plan& plan) const {
    for (const Merge& merge : plan.merges) {
      if (const std::int32_t code = Add(merge); code != MERGEPLAN_OK) return code;
    }
    return SetBlocks(plan.blocks);
  }
  // The predicted error of single steps, as a plugin asks for it.
  std::int32_t Predict(double* objective) const {
    std::vector<Range> steps;
    for (std::int32_t t = 1; t <= request->teacher_steps; ++t) steps.push_back({t, t});
    return planner->evaluate_tree(planner->context, nullptr, 0, Pairs(steps),
                                  request->teacher_steps, objective, error);
  }
  bool At(std::int32_t teacher_steps, std::int32_t student_steps) const {
    return request->teacher_steps == teacher_steps && request->student_steps == student_steps;
  }
};

// The mutants that spoil a good plan.
void Spoil(const PlanCall& call, Plan* plan) {
  const mergeplan_plan_request& request = *call.request;
  if (call.At(64, 7)) {
    Merge& merge = plan->merges.back();
    if (Is("gap")) merge.children.back().first += 1;
    if (Is("one-child")) merge.children.pop_back();
    if (Is("beyond")) merge.range.last = 65;
    const Merge copy = merge;
    if (Is("merge-twice")) plan->merges.push_back(copy);
    if (Is("unused-merge")) plan->merges.push_back({{1, 64}, {{1, 32}, {33, 64}}});
    if (Is("missing-merge")) plan->merges.erase(plan->merges.begin());
    if (Is("too-many-merges")) {
      for (int k = 0; k < 64; ++k) plan->merges.push_back(copy);
    }
    if (Is("no-blocks")) plan->blocks.clear();
    if (Is("other-blocks")) {
      plan->merges.push_back({{1, 64}, plan->blocks});
      plan->blocks = {{1, 64}};
    }
  }
  const bool spectrum = Is("spectrum") && request.dimensions == 0;
  const bool weights = Is("weights") && request.weights != nullptr;
  const bool question = Is("question") && request.init == MERGEPLAN_INIT_JUMP &&
                        request.reference == MERGEPLAN_REFERENCE_DATA &&
                        request.space == MERGEPLAN_SPACE_BINARY &&
                        request.budget_kind == MERGEPLAN_BUDGET_SGD;
  if (spectrum || weights || question) plan->blocks.front().last -= 1;
}

std::int32_t BreakTheBorder(const PlanCall& call) {
  const mergeplan_planner& planner = *call.planner;
  const std::int32_t block[] = {1, 64};
  double objective = 0;
  if (Is("sink-other-thread")) {
    std::int32_t code = MERGEPLAN_OK;
    std::thread([&] { code = call.SetBlocks({{1, 64}}); }).join();
    return code;
  }
  if (Is("evaluate-null-objective")) {
    planner.evaluate_tree(planner.context, nullptr, 0, block, 1, nullptr, nullptr);
  }
  if (Is("evaluate-small-merge")) {
    const mergeplan_merge merge = {8, 1, 64, 0, 0, nullptr};
    const mergeplan_merge* const merges[] = {&merge};
    planner.evaluate_tree(planner.context, merges, 1, block, 1, &objective, nullptr);
  }
  mergeplan_solve_options options = {};
  options.struct_size = Is("solve-small-options") ? 4 : sizeof(options);
  options.fields = Is("solve-bad-gap") ? MERGEPLAN_SOLVE_GAP : 0;
  options.gap = -1;
  if (Is("solve-small-options") || Is("solve-bad-gap")) {
    planner.solve(planner.context, &options, call.sink, nullptr, nullptr);
  }
  if (Is("solve-null-sink")) planner.solve(planner.context, nullptr, nullptr, nullptr, nullptr);
  if (Is("parse-null")) planner.parse_plan(planner.context, nullptr, call.sink, nullptr);
  if (Is("extension-null")) planner.get_extension(planner.context, nullptr);
  if (Is("bad-error")) {
    mergeplan_error error = {};
    planner.evaluate_tree(planner.context, nullptr, 0, block, 1, &objective, &error);
  }
  return MERGEPLAN_OK;
}

std::int32_t BadError(const PlanCall& call) {
  if (Is("no-text")) return Fail(call.error, MERGEPLAN_ABORTED, "");
  if (Is("no-error-code")) {
    Fail(call.error, MERGEPLAN_ABORTED, "not quite");
    call.error->code = MERGEPLAN_INTERNAL;
    return MERGEPLAN_ABORTED;
  }
  if (Is("unknown-code")) {
    Fail(call.error, MERGEPLAN_ABORTED, "seventy-seven");
    call.error->code = 77;
    return 77;
  }
  if (Is("text-bytes")) return Fail(call.error, MERGEPLAN_ABORTED, "\xff\xfe");
  return MERGEPLAN_OK;
}

// What a plugin does with an error of the host.
std::int32_t OnHostError(std::int32_t code, mergeplan_error* error) {
  if (Is("sink-ignored")) return MERGEPLAN_OK;
  if (Is("sink-code")) return Fail(error, MERGEPLAN_INTERNAL, "it did not work");
  if (Is("sink-throws")) throw std::runtime_error("the sink is full");
  if (Is("overflow") && error != nullptr && error->text != nullptr) {
    std::strcpy(error->text, "longer than some buffers");  // NOLINT: the mistake that is meant
  }
  if (Is("no-nul") && error != nullptr && error->text != nullptr && error->capacity < 20) {
    std::memset(error->text, 'n', error->capacity);
  }
  if (Is("writes-capacity") && error != nullptr) error->capacity += 1;
  if (Is("code-by-room") && error != nullptr && error->capacity < 10) {
    return Fail(error, MERGEPLAN_INTERNAL, "no room");
  }
  return code;
}

std::atomic<int> g_plans{0};
std::int32_t g_steps = 0;
char g_description[] = "Keeps every rule";

std::int32_t MakePlanOrThrow(const PlanCall& call) {
  const mergeplan_plan_request& request = *call.request;
  const mergeplan_planner& planner = *call.planner;
  mergeplan_error* error = call.error;
  ++g_plans;
  if (Is("entry-changes")) g_description[0] = 'k';
  if (Is("refuses")) return Fail(error, MERGEPLAN_UNIMPLEMENTED, "not today");
  if (Is("crash") && call.At(64, 1)) std::raise(SIGSEGV);
  if (Is("exit") && call.At(64, 1)) std::_Exit(0);
  if (Is("leaves-a-process") && call.At(64, 1)) LeaveAProcess();
  if (Is("prints") && call.At(64, 1)) std::puts("begin\nend Plan.LogsLines failed");
  while (Is("endless") && call.At(64, 1)) ::pause();
  if (Is("exact-size") && request.struct_size > sizeof(request)) {
    return Fail(error, MERGEPLAN_INTERNAL, "another header");
  }
  // A field of 1.1, without a look at struct_size.
  if (Is("reads-behind-the-request") && request.max_merges != 0) {
    return Fail(error, MERGEPLAN_INTERNAL, "a limit that nobody gave");
  }
  if (Is("behind-the-table") && planner.struct_size == sizeof(planner)) {
    // The function that a later header may have there.
    void (*later)() = nullptr;
    std::memcpy(&later, &planner + 1, sizeof(later));
    later();
  }
  if (Is("log-null")) planner.log(planner.context, MERGEPLAN_LOG_INFO, nullptr);
  if (Is("log-bytes")) planner.log(planner.context, MERGEPLAN_LOG_INFO, "\xff");
  if (Is("log-lines")) planner.log(planner.context, MERGEPLAN_LOG_INFO, "two\nlines");
  planner.log(planner.context, MERGEPLAN_LOG_INFO, "one line");
  if (Is("throws") && call.At(64, 9)) throw std::runtime_error("not caught");
  if (Is("throws-int") && call.At(64, 9)) throw 9;
  if (Is("writes-request") && call.At(64, 9)) const_cast<double*>(request.alpha)[1] = 0.5;
  if (call.At(3, 2)) {
    if (const std::int32_t code = BadError(call); code != MERGEPLAN_OK) return code;
  }
  if (call.At(64, 1)) {
    if (const std::int32_t code = BreakTheBorder(call); code != MERGEPLAN_OK) return code;
  }
  if (Is("cancelled-code") && planner.cancelled(planner.context) != 0) {
    return Fail(error, MERGEPLAN_ABORTED, "stopped");
  }
  if (!Is("cancelled-ignored") && planner.cancelled(planner.context) != 0) {
    return Fail(error, MERGEPLAN_CANCELLED, "stopped");
  }
  bool backwards = false;
  const char* value =
      mergeplan_plugin_cpp::FindParameter(request.parameters, request.parameter_count, "count");
  if (value != nullptr && std::strcmp(value, "2") == 0) backwards = true;
  if (Is("order")) backwards = std::strcmp(request.parameters[0]->name, "count") != 0;
  if (Is("value-throws") && value != nullptr && std::strcmp(value, "9") == 0) {
    throw std::runtime_error("nine");
  }
  if (Is("counter")) backwards = g_plans % 2 == 0;
  if (request.dimensions > 0) {
    double objective = 0;
    const int times = Is("cancelled-ignored") ? 20 : 1;
    for (int k = 0; k < times; ++k) {
      if (const std::int32_t code = call.Predict(&objective); code != MERGEPLAN_OK) {
        return Is("planner-error-without-text") ? Fail(error, MERGEPLAN_ABORTED, "") : code;
      }
    }
    for (int k = 0; std::isnan(objective) && Is("nan-for-ever") && k < 1000; ++k) {
      call.Predict(&objective);
    }
    if (std::isnan(objective) && Is("nan-plan")) return MERGEPLAN_OK;
  }
  g_steps = request.teacher_steps;
  if (Is("global-plan")) Linger();
  const std::int32_t steps = Is("global-plan") ? g_steps : request.teacher_steps;

  Plan plan;
  plan.blocks = mergeplan_plugin_cpp::EqualBlocks(steps, request.student_steps);
  for (const Range& block : plan.blocks) AddHalves(&plan, block, backwards);
  Spoil(call, &plan);
  if (Is("value-plan") && value != nullptr && std::strcmp(value, "9") == 0) plan.blocks.clear();
  const std::int32_t code = call.Send(plan);
  if (code != MERGEPLAN_OK) return OnHostError(code, error);
  if (Is("blocks-twice") && call.At(64, 9)) call.SetBlocks(plan.blocks);
  return MERGEPLAN_OK;
}

std::int32_t MakePlan(const mergeplan_plan_request* request, const mergeplan_planner* planner,
                      const mergeplan_plan_sink* sink, mergeplan_error* error) {
  return MakePlanOrThrow({request, planner, sink, error});
}

// ---- execute

struct ExecuteCall {
  const mergeplan_execute_request* request;
  const mergeplan_runtime* runtime;
  mergeplan_error* error;

  std::int32_t Train(const mergeplan_merge& merge, mergeplan_train_result* result) const {
    return runtime->train_merge(runtime->context, merge.first, merge.last, result, error);
  }
};

// The mutants that call what they may not, and go on.
void BreakTheRuntime(const ExecuteCall& call, const mergeplan_merge& merge) {
  const mergeplan_runtime& runtime = *call.runtime;
  void* context = runtime.context;
  std::uint64_t snapshot = 0;
  if (Is("unknown-merge")) runtime.train_merge(context, 1, 1, nullptr, nullptr);
  if (Is("empty-round")) runtime.train_round(context, nullptr, 0, nullptr, nullptr);
  if (Is("small-evaluation")) {
    mergeplan_evaluation evaluation = {};
    runtime.evaluate(context, &evaluation, nullptr);
  }
  if (Is("small-result")) {
    mergeplan_train_result result = {};
    call.runtime->train_merge(context, merge.first, merge.last, &result, nullptr);
  }
  if (Is("early-snapshot")) {
    runtime.snapshot(context, merge.first, merge.last, &snapshot, nullptr);
  }
  if (Is("release-unknown")) runtime.release(context, 4711, nullptr);
  if (Is("checkpoint-other-thread")) {
    std::thread([&] { runtime.checkpoint(context, nullptr); }).join();
  }
  if (Is("parent-first")) {
    const mergeplan_plan& plan = *call.request->plan;
    const mergeplan_merge& parent = *plan.merges[plan.merge_count - 1];
    if (parent.round > 1) runtime.train_merge(context, parent.first, parent.last, nullptr, nullptr);
  }
}

void Tell(const ExecuteCall& call, double fraction, const mergeplan_train_result& result) {
  const mergeplan_runtime& runtime = *call.runtime;
  if (Is("progress-2")) fraction *= 2;
  if (Is("progress-falls")) fraction = 1 - fraction;
  if (Is("progress-nan")) fraction = std::numeric_limits<double>::quiet_NaN();
  if (Is("progress-by-loss")) fraction = 0.5 * result.final_loss;
  const char* what = Is("progress-bytes") ? "\xff" : "training";
  runtime.progress(runtime.context, fraction, what);
  if (Is("execute-log-null")) runtime.log(runtime.context, MERGEPLAN_LOG_INFO, nullptr);
  if (Is("execute-log-lines")) runtime.log(runtime.context, MERGEPLAN_LOG_INFO, "two\nlines");
}

std::int32_t OnTrainError(std::int32_t code, mergeplan_error* error) {
  if (Is("train-ignored")) return MERGEPLAN_OK;
  if (Is("train-code")) return Fail(error, MERGEPLAN_INTERNAL, "it did not work");
  if (Is("train-cancelled-code") && code == MERGEPLAN_CANCELLED) {
    return Fail(error, MERGEPLAN_INTERNAL, "it was stopped");
  }
  if (Is("execute-overflow") && error != nullptr && error->text != nullptr) {
    std::strcpy(error->text, "longer than some buffers");  // NOLINT: the mistake that is meant
  }
  if (Is("execute-no-text")) return Fail(error, static_cast<mergeplan_code>(code), "");
  return code;
}

std::int32_t g_merges = 0;

std::int32_t Execute(const mergeplan_execute_request* request, const mergeplan_runtime* runtime,
                     mergeplan_error* error) {
  const ExecuteCall call = {request, runtime, error};
  const mergeplan_plan& plan = *request->plan;
  if (Is("execute-crash") && plan.teacher_steps == 64) std::raise(SIGSEGV);
  if (Is("execute-throws") && plan.teacher_steps == 64) throw std::runtime_error("not caught");
  if (Is("execute-exact-size") && runtime->struct_size != sizeof(*runtime)) {
    return Fail(error, MERGEPLAN_INTERNAL, "another header");
  }
  if (Is("execute-refuses")) return Fail(error, MERGEPLAN_UNIMPLEMENTED, "not today");
  if (Is("own-plans") && plan.student_steps == 9) return MERGEPLAN_OK;
  g_merges = plan.merge_count;
  if (Is("global-execute")) Linger();
  std::int32_t count =
      Is("global-execute") ? std::min(g_merges, plan.merge_count) : plan.merge_count;
  if (Is("half")) count = (count + 1) / 2;
  for (std::int32_t k = 0; k < count; ++k) {
    const mergeplan_merge& merge = *plan.merges[k];
    if (!Is("stop-ignored") && runtime->cancelled(runtime->context) != 0) {
      if (Is("stop-code")) return Fail(error, MERGEPLAN_ABORTED, "stopped");
      return Fail(error, MERGEPLAN_CANCELLED, Is("stop-no-text") ? "" : "stopped");
    }
    if (k == 0) BreakTheRuntime(call, merge);
    mergeplan_train_result result = {};
    result.struct_size = sizeof(result);
    const std::int32_t code = call.Train(merge, &result);
    if (code != MERGEPLAN_OK) return OnTrainError(code, error);
    if (Is("nan-without-text") && std::isnan(result.final_loss)) {
      return Fail(error, MERGEPLAN_ABORTED, "");
    }
    if (Is("nan-half") && std::isnan(result.final_loss)) return MERGEPLAN_OK;
    if (Is("nan-throws") && std::isnan(result.final_loss)) throw std::runtime_error("nan");
    if (Is("twice"))
      runtime->train_merge(runtime->context, merge.first, merge.last, nullptr, nullptr);
    Tell(call, static_cast<double>(k + 1) / plan.merge_count, result);
    std::uint64_t snapshot = 0;
    runtime->snapshot(runtime->context, merge.first, merge.last, &snapshot, nullptr);
    if (!Is("snapshot-left")) runtime->release(runtime->context, snapshot, nullptr);
  }
  if (Is("writes-plan") && plan.merge_count > 0) {
    const_cast<mergeplan_merge*>(plan.merges[0])->round += 1;
  }
  return MERGEPLAN_OK;
}

// ---- the entry

mergeplan_parameter_spec Spec(std::int32_t type, const char* name, const char* value) {
  return {sizeof(mergeplan_parameter_spec), type, name, value, "help", 0, 0, 0, 0};
}

const void* Extension(const char* name) { return Is("extension") ? name : nullptr; }

void SpoilEntry(mergeplan_plugin* plugin) {
  if (Is("size-small")) plugin->struct_size = sizeof(*plugin) - 8;
  if (Is("size-tiny")) plugin->struct_size = 4;
  if (Is("size-large")) plugin->struct_size = sizeof(*plugin) + 8;
  if (Is("major")) plugin->abi_major = 2;
  if (Is("needed")) plugin->abi_minor_needed = 3;
  if (Is("no-plan")) plugin->plan = nullptr;
  if (Is("no-execute")) plugin->execute = nullptr;
  if (Is("name")) plugin->name = "Bad Name";
  if (Is("null-version")) plugin->version = nullptr;
  if (Is("description-lines")) plugin->description = "two\nlines";
  if (Is("needs")) plugin->teacher_needs = std::uint64_t{1} << 40;
  if (Is("reserved")) plugin->reserved = 1;
  if (Is("null-parameters")) plugin->parameters = nullptr;
  if (Is("negative-count")) plugin->parameter_count = -1;
}

void SpoilSpecs(mergeplan_parameter_spec* count, mergeplan_parameter_spec* rate) {
  if (Is("spec-size")) rate->struct_size = 8;
  if (Is("spec-type")) rate->type = 4;
  if (Is("spec-name-twice")) rate->name = count->name;
  if (Is("spec-null-name")) rate->name = nullptr;
  if (Is("spec-help")) rate->help = "two\nlines";
  if (Is("spec-nan")) rate->minimum = std::numeric_limits<double>::quiet_NaN();
  if (Is("spec-bounds")) {
    rate->default_value = nullptr;
    rate->minimum = 2;
  }
  if (Is("spec-text-bounds")) {
    rate->type = MERGEPLAN_PARAMETER_TEXT;
  }
  if (Is("spec-default")) rate->default_value = "half";
  if (Is("spec-default-range")) count->default_value = "10";
}

}  // namespace

const mergeplan_plugin* mergeplan_plugin_entry(void) {
  if (Is("entry-null")) return nullptr;
  if (Is("entry-throws")) throw std::runtime_error("no entry");
  if (Is("entry-crash")) std::raise(SIGSEGV);
  struct Data {
    mergeplan_parameter_spec count = Spec(MERGEPLAN_PARAMETER_INTEGER, "count", "3");
    mergeplan_parameter_spec rate = Spec(MERGEPLAN_PARAMETER_REAL, "rate", "0.5");
    const mergeplan_parameter_spec* list[2] = {&count, &rate};
    mergeplan_plugin plugin = {sizeof(mergeplan_plugin),
                               MERGEPLAN_ABI_MAJOR,
                               MERGEPLAN_ABI_MINOR,
                               0,
                               "mutant",
                               "0.1",
                               g_description,
                               0,
                               2,
                               0,
                               list,
                               MakePlan,
                               Execute,
                               Extension};
    Data() {
      count.has_minimum = 1;
      count.has_maximum = 1;
      count.minimum = 2;
      count.maximum = 9;
      rate.has_minimum = 1;
      rate.has_maximum = 1;
      rate.maximum = 1;
      SpoilEntry(&plugin);
      SpoilSpecs(&count, &rate);
      if (Is("spec-null")) list[1] = nullptr;
    }
  };
  static const Data data;
  static const Data copy;
  static std::atomic<int> calls{0};
  if (Is("entry-moves") && calls++ % 2 == 1) return &copy.plugin;
  return &data.plugin;
}
