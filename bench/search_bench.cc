// How long a plan takes, and how many times faster that is than Algorithm 1 of the paper as
// printed, on one problem in one run:
//
//   bin/search_bench
//
// The ratio stands in the counter `algorithm1_over_this` of the benchmark AgainstAlgorithm1.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>

#include "planner/search/search.h"
#include "tests/oracle/algorithm1.h"
#include "tests/oracle/problem.h"

namespace mergeplan {
namespace {

Model MakeModel(std::vector<double> variances, int steps, double time) {
  ModelSpec spec;
  spec.schedule = CosineSchedule(steps);
  spec.variances = std::move(variances);
  spec.budget = Budget::Flow(time);
  return *Model::Create(std::move(spec));
}

std::vector<double> LogSpaced(int count, double low, double high) {
  std::vector<double> out;
  for (int k = 0; k < count; ++k)
    out.push_back(low * std::pow(high / low, count == 1 ? 0 : k / (count - 1.0)));
  return out;
}

// Arguments: dimensions, teacher steps, gap in ten-thousandths. Variances log-spaced in 0.2..5.
void Plan(benchmark::State& state) {
  const Model model = MakeModel(LogSpaced(static_cast<int>(state.range(0)), 0.2, 5),
                                static_cast<int>(state.range(1)), 1.6);
  SearchOptions options;
  options.gap = static_cast<double>(state.range(2)) * 1e-4;
  options.time_limit_seconds = 600;
  SearchResult result;
  for (auto _ : state) result = *Solve(model, options);
  state.counters["gap"] = result.gap();
  state.counters["objective"] = result.objective;
}
BENCHMARK(Plan)
    ->Args({1, 32, 0})
    ->Args({2, 32, 0})
    ->Args({16, 32, 0})
    ->Args({128, 64, 0})
    ->Args({784, 32, 100})
    ->Unit(benchmark::kMillisecond);

// Both on the same problem, binary plans, two dimensions around 1. The oracle computes in quadruple
// precision, which makes it slower than a float64 Algorithm 1 would be; its candidates are counted
// too.
void AgainstAlgorithm1(benchmark::State& state) {
  const int steps = static_cast<int>(state.range(0));
  const Model model = MakeModel({0.95, 1.05}, steps, 1.6);
  oracle::ProblemSpec spec;
  spec.alpha = model.schedule().alpha;
  spec.sigma = model.schedule().sigma;
  spec.lambda = {0.95, 1.05};
  spec.train_time = 1.6;
  const auto begin = std::chrono::steady_clock::now();
  const oracle::Algorithm1Result slow = oracle::Algorithm1(oracle::Problem(spec));
  const double slow_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  SearchOptions options;
  options.gap = 0;
  options.space = Space::kBinary;
  double seconds = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(Solve(model, options));
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  state.counters["algorithm1_over_this"] =
      slow_seconds * static_cast<double>(state.iterations()) / seconds;
  state.counters["algorithm1_candidates"] = static_cast<double>(slow.candidates);
}
BENCHMARK(AgainstAlgorithm1)->Arg(8)->Arg(12)->Arg(14)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace mergeplan

BENCHMARK_MAIN();
