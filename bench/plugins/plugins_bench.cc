// What a call costs that crosses the border, and what the host's checks around it cost. The plugin
// (trivial.cc) is a library of its own, so that nothing is inlined across.
#include <dlfcn.h>

#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "planner/operators/canonical.h"
#include "planner/schedule/schedule.h"
#include "plugins/abi/mergeplan_plugin.h"
#include "plugins/host/host.h"
#include "plugins/host/services.h"

namespace mergeplan {
namespace {

std::shared_ptr<const Plugin> Trivial() {
  static const auto plugin = LoadPlugin(MERGEPLAN_BENCH_TRIVIAL, {});
  return plugin.ok() ? *plugin : nullptr;
}

const mergeplan_plugin* Entry() {
  void* handle = dlopen(MERGEPLAN_BENCH_TRIVIAL, RTLD_NOW | RTLD_LOCAL);
  void* symbol = handle == nullptr ? nullptr : dlsym(handle, MERGEPLAN_PLUGIN_SYMBOL);
  return symbol == nullptr ? nullptr
                           : reinterpret_cast<decltype(&mergeplan_plugin_entry)>(symbol)();
}

// plan() for T = 1 through the table, with a sink that only counts: the border itself.
void BM_Border_Plan(benchmark::State& state) {
  const mergeplan_plugin* plugin = Entry();
  if (plugin == nullptr) return state.SkipWithError("the plugin was not loaded");
  const double alpha[] = {1, 0};
  const double sigma[] = {0, 1};
  mergeplan_plan_request request = {};
  request.struct_size = sizeof(request);
  request.teacher_steps = 1;
  request.student_steps = 1;
  request.alpha = alpha;
  request.sigma = sigma;
  mergeplan_planner planner = {};
  planner.struct_size = sizeof(planner);
  int blocks = 0;
  mergeplan_plan_sink sink = {};
  sink.struct_size = sizeof(sink);
  sink.context = &blocks;
  sink.set_blocks = [](void* context, const std::int32_t*, std::int32_t count,
                       mergeplan_error*) -> std::int32_t {
    *static_cast<int*>(context) += count;
    return MERGEPLAN_OK;
  };
  char text[256];
  mergeplan_error error = {sizeof(error), 0, sizeof(text), text};
  for (auto _ : state) {
    benchmark::DoNotOptimize(plugin->plan(&request, &planner, &sink, &error));
  }
  if (blocks != static_cast<int>(state.iterations())) state.SkipWithError("no plan came back");
}
BENCHMARK(BM_Border_Plan);

// Plugin::MakePlan whole: the request is checked, the plan collected and checked.
void BM_MakePlan(benchmark::State& state) {
  const auto plugin = Trivial();
  if (plugin == nullptr) return state.SkipWithError("the plugin was not loaded");
  PlanRequest request;
  request.schedule = CosineSchedule(static_cast<int>(state.range(0)));
  request.variances.assign(static_cast<size_t>(state.range(1)), 0.5);
  request.budget = Budget::Flow(1.6);
  LinearPlannerServices services;
  for (auto _ : state) {
    const auto plan = plugin->MakePlan(request, services);
    if (!plan.ok()) return state.SkipWithError(std::string(plan.status().message()).c_str());
  }
}
BENCHMARK(BM_MakePlan)->Args({1, 0})->Args({1, 784})->Args({50, 784})->Args({1000, 784});

// A runtime that does nothing.
class IdleRuntime : public RuntimeInterface {
 public:
  absl::StatusOr<TrainResult> TrainMerge(int) override { return TrainResult(); }
  absl::StatusOr<std::vector<TrainResult>> TrainRound(absl::Span<const int> merges) override {
    return std::vector<TrainResult>(merges.size());
  }
  absl::StatusOr<EvaluationResult> Evaluate() override { return EvaluationResult(); }
  absl::Status Snapshot(int) override { return absl::OkStatus(); }
  absl::Status Release(int) override { return absl::OkStatus(); }
  absl::Status Checkpoint() override { return absl::OkStatus(); }
  void Log(LogLevel, std::string_view) override {}
  void Progress(double, std::string_view) override {}
  bool Cancelled() override { return false; }
};

void Run(benchmark::State& state, const Plan& plan, const std::string& what, std::int64_t calls) {
  const auto plugin = Trivial();
  if (plugin == nullptr) return state.SkipWithError("the plugin was not loaded");
  IdleRuntime runtime;
  const std::map<std::string, std::string> parameters = {{"calls", std::to_string(calls)},
                                                         {"what", what}};
  for (auto _ : state) {
    const absl::Status status = plugin->Execute(plan, runtime, parameters);
    if (!status.ok()) return state.SkipWithError(std::string(status.message()).c_str());
  }
  if (calls > 0) {
    // One Execute around them all.
    state.counters["per_call"] = benchmark::Counter(
        static_cast<double>(calls),
        benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  }
}

constexpr std::int64_t kCalls = 100000;

void BM_Execute(benchmark::State& state) {
  Run(state, CanonicalPlan(Strategy::kVanilla, 1).value(), "", 0);
}
BENCHMARK(BM_Execute);

void BM_Cancelled(benchmark::State& state) {
  Run(state, CanonicalPlan(Strategy::kVanilla, 1).value(), "cancelled", kCalls);
}
BENCHMARK(BM_Cancelled);

void BM_Progress(benchmark::State& state) {
  Run(state, CanonicalPlan(Strategy::kVanilla, 1).value(), "progress", kCalls);
}
BENCHMARK(BM_Progress);

void BM_Evaluate(benchmark::State& state) {
  Run(state, CanonicalPlan(Strategy::kVanilla, 1).value(), "evaluate", kCalls);
}
BENCHMARK(BM_Evaluate);

// train_merge with its checks, over the 999 merges of a chain; Execute's own work is in it.
void BM_TrainMerge(benchmark::State& state) {
  const Plan plan = CanonicalPlan(Strategy::kConsistency, 1000).value();
  Run(state, plan, "", 0);
  state.counters["per_call"] = benchmark::Counter(
      plan.size(), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_TrainMerge);

}  // namespace
}  // namespace mergeplan

BENCHMARK_MAIN();
