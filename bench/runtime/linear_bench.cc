// How fast linear students train; `bash bench/runtime/table.sh` writes README.md from it and from
// bench/peers/linear_eager.py. One thread, but for the tables of the paper.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "adapters/linear/sum_squares.h"
#include "adapters/linear/trainer.h"
#include "adapters/linear/trials.h"
#include "adapters/noise/chi_squared.h"
#include "adapters/noise/noise.h"
#include "planner/operators/canonical.h"
#include "planner/operators/model.h"

namespace mergeplan {
namespace {

constexpr int kBatch = 2560;

void DrawNormals(benchmark::State& state) {
  std::vector<float> out(8192);
  NoiseStream stream(1, 1, 2, 0);
  for (auto _ : state) {
    stream.Fill(out.data(), static_cast<std::int64_t>(out.size()));
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(out.size()));
}
BENCHMARK(DrawNormals);

void DrawChiSquared(benchmark::State& state) {
  const ChiSquaredStream stream(StreamName::Of(1, 1, 2, 1), kBatch);
  std::uint64_t index = 0;
  for (auto _ : state) benchmark::DoNotOptimize(stream.At(index++));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(DrawChiSquared);

MergeTask Task(int d) {
  MergeTask task;
  task.range = {1, 2};
  task.start.assign(d, 1.0);
  task.target.assign(d, 0.5);
  for (int k = 0; k < d; ++k) task.scale.push_back(0.5 + (d > 1 ? k / (d - 1.0) : 0));
  return task;
}

// Whole trainings of one merge; the figure is updates per second.
void Train(benchmark::State& state, Draws draws, std::int64_t updates) {
  TrainerOptions options;
  options.lr = 1e-6;
  options.batch = kBatch;
  options.updates = updates;
  options.threads = 1;
  options.recipe.draws = draws;
  for (auto _ : state) {
    const std::unique_ptr<Trainer> trainer =
        *MakeLinearTrainer({Task(static_cast<int>(state.range(0)))}, options);
    while (!trainer->done()) {
      if (!trainer->Advance().ok()) state.SkipWithError("training failed");
    }
    benchmark::DoNotOptimize(trainer->Save().parameters.data());
  }
  state.SetItemsProcessed(state.iterations() * updates);
}
BENCHMARK_CAPTURE(Train, fixed, Draws::kFixed, 100000)->Arg(2)->Arg(128);
BENCHMARK_CAPTURE(Train, samples, Draws::kSamples, 500)->Arg(2)->Arg(128);
BENCHMARK_CAPTURE(Train, chi2, Draws::kChi2, 20000)->Arg(2)->Arg(128);

// One batch for all updates, whose samples are looped over in every one of them.
void LoopOverFixedSamples(benchmark::State& state) {
  const std::int64_t d = state.range(0);
  std::vector<float> noise(static_cast<size_t>(kBatch * d));
  NoiseStream(1, 1, 2, 0).Fill(noise.data(), kBatch * d);
  std::vector<double> a(d, 1.0), sums(d);
  for (auto _ : state) {
    sums.assign(d, 0.0);
    SumSquares(noise.data(), kBatch, d, sums.data());
    for (std::int64_t k = 0; k < d; ++k) a[k] -= 1e-6 * 2 / kBatch * sums[k] * (a[k] - 0.5);
    benchmark::DoNotOptimize(a.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(LoopOverFixedSamples)->Arg(2)->Arg(128);

// The students of the paper's tables of Gaussian data: six variances, four strategies, ten trials,
// 100 updates a merge, rate 1e-3 on the embedding. Two threads.
void PaperTables(benchmark::State& state, Draws draws, const std::vector<int>& steps) {
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t seed = 0; seed < 10; ++seed) seeds.push_back(seed);
  TrainerOptions options;
  options.threads = 2;
  options.recipe.draws = draws;
  options.recipe.student = StudentKind::kEmbedding;
  for (auto _ : state) {
    for (const int t : steps) {
      ModelSpec spec;
      spec.schedule = CosineSchedule(t);
      spec.variances = {0.2, 0.5, 1.0, 1.02, 2.0, 5.0};
      spec.budget = Budget::Sgd(1e-3, 100, kBatch, /*feature_norm=*/32);
      const Model model = *Model::Create(std::move(spec));
      for (const Strategy strategy : kStrategies) {
        if (!TrainTrials(model, *CanonicalPlan(strategy, t), seeds, options).ok()) {
          state.SkipWithError("training failed");
        }
      }
    }
  }
}
BENCHMARK_CAPTURE(PaperTables, chi2, Draws::kChi2, {32, 64, 128, 256, 512})
    ->Iterations(1)
    ->UseRealTime()
    ->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(PaperTables, samples_T32, Draws::kSamples, {32})
    ->Iterations(1)
    ->UseRealTime()
    ->Unit(benchmark::kSecond);

}  // namespace
}  // namespace mergeplan

BENCHMARK_MAIN();
