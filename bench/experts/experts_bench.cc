// Times updates of the affine mixture-of-experts student, and makes the table of the paper's
// fig:gmm_error_plot. See README.md beside this file.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "adapters/experts/executor.h"
#include "adapters/experts/trainer.h"
#include "planner/operators/canonical.h"

namespace mergeplan::experts {
namespace {

constexpr int kSteps = 32;
constexpr int kBatch = 2560;

// The fastest of several runs, in seconds of the processor per update of one student: other
// programs on the machine count for little.
double SecondsPerUpdate(const TrainerOptions& wanted, int trials, int target_steps) {
  const auto teacher = std::make_shared<const MixtureTrajectory>(
      MixtureTrajectory::Create(CircleMixture().value(), CosineSchedule(kSteps)).value());
  TrainerOptions options = wanted;
  options.batch = kBatch;
  options.updates = 1'000'000;
  options.pool_rows = 10 * kBatch;
  std::vector<TrainTask> tasks;
  for (int trial = 0; trial < trials; ++trial) {
    const auto seed = static_cast<std::uint64_t>(trial);
    tasks.push_back({"bench",
                     InitialParameters(options.shape, seed),
                     16,
                     {MakeTeacher(teacher, 17 - target_steps, 16)},
                     seed});
  }
  auto trainer = Trainer::Create(tasks, Inputs(teacher), options).value();
  double best = 1e9;
  for (int run = 0; run < 24; ++run) {
    const std::int64_t before = trainer->updates_made();
    const std::clock_t start = std::clock();
    if (!trainer->Advance(0.05).ok()) return std::nan("");
    const double passed = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (run >= 4) {  // the first ones find out how many updates fit
      best = std::min(best, passed / static_cast<double>(trainer->updates_made() - before));
    }
  }
  return best;
}

int Updates() {
  std::printf("inputs,target_steps,precision,trials,microseconds\n");
  for (const Precision precision : {Precision::kFloat32, Precision::kFloat64}) {
    const auto row = [&](InputKind inputs, int steps, int trials) {
      TrainerOptions options;
      options.precision = precision;
      options.inputs = inputs;
      std::printf("%s,%d,%s,%d,%.1f\n", std::string(ToString(inputs)).c_str(), steps,
                  std::string(ToString(precision)).c_str(), trials,
                  1e6 * SecondsPerUpdate(options, trials, steps));
      std::fflush(stdout);
    };
    row(InputKind::kPool, 1, 1);
    row(InputKind::kPool, 1, 10);
    row(InputKind::kFresh, 1, 1);
    row(InputKind::kFresh, 1, 10);
    row(InputKind::kFresh, 2, 1);
    row(InputKind::kFresh, 16, 1);
  }
  return 0;
}

struct FigureOptions {
  int trials = 10, threads = 2, max_steps = 512, batch = kBatch;
  std::int64_t updates = 10000, pool_rows = 65536, held_out_rows = 8192;
};

int Figure(const FigureOptions& wanted) {
  std::printf("T,loss,deviation,fit,teacher_calls,seconds\n");
  for (int steps = 1; steps <= wanted.max_steps; steps *= 2) {
    ExecutorOptions options;
    options.seeds.resize(wanted.trials);
    std::iota(options.seeds.begin(), options.seeds.end(), 1U);
    options.fit_updates = options.iterations = wanted.updates;
    options.batch = wanted.batch;
    options.inputs = InputKind::kPool;
    options.pool_rows = wanted.pool_rows;
    options.held_out_rows = wanted.held_out_rows;
    options.threads = wanted.threads;
    const auto start = std::chrono::steady_clock::now();
    auto executor =
        Executor::Create(CircleMixture().value(), CosineSchedule(steps),
                         CanonicalPlan(Strategy::kVanilla, steps).value(), std::move(options));
    absl::Status status = executor.status();
    if (status.ok()) status = executor->Fit();
    if (status.ok()) status = executor->TrainAll();
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
      return 1;
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    double sum = 0, squares = 0, fit = 0;
    std::int64_t calls = 0;
    for (int trial = 0; trial < wanted.trials; ++trial) {
      const TrialRecord& record = executor->records(trial);
      // With one step nothing is merged: the student of single steps is the answer.
      const StudentRecord& student = steps == 1 ? record.fit : record.merges[0];
      sum += student.teacher.mean;
      squares += student.teacher.mean * student.teacher.mean;
      fit += record.fit.final_loss / wanted.trials;
      calls += record.fit.teacher_calls + (steps == 1 ? 0 : student.teacher_calls);
    }
    const double n = wanted.trials, mean = sum / n;
    const double deviation =
        n > 1 ? std::sqrt(std::max(0.0, (squares - n * mean * mean) / (n - 1))) : std::nan("");
    std::printf("%d,%.4g,%.2g,%.2g,%lld,%.1f\n", steps, mean, deviation, fit,
                static_cast<long long>(calls), passed.count());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace mergeplan::experts

int main(int argc, char** argv) {
  using mergeplan::experts::FigureOptions;
  CLI::App app("Updates of the affine mixture-of-experts student");
  app.require_subcommand(1);
  app.add_subcommand("updates", "microseconds per update, as CSV");
  CLI::App* figure = app.add_subcommand("figure", "the losses of fig:gmm_error_plot, as CSV");
  FigureOptions options;
  figure->add_option("--trials", options.trials)->check(CLI::Range(1, 1000));
  figure->add_option("--threads", options.threads)->check(CLI::Range(1, 1024));
  figure->add_option("--max-steps", options.max_steps)->check(CLI::Range(1, 4096));
  figure->add_option("--batch", options.batch);
  figure->add_option("--updates", options.updates);
  figure->add_option("--pool-rows", options.pool_rows);
  figure->add_option("--held-out-rows", options.held_out_rows);
  CLI11_PARSE(app, argc, argv);
  return figure->parsed() ? mergeplan::experts::Figure(options) : mergeplan::experts::Updates();
}
