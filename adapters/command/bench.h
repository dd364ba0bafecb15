#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/judge/judge_options.h"
#include "adapters/runtime/arguments.h"
#include "adapters/runtime/bench_row.h"
#include "planner/operators/terms.h"

namespace mergeplan {

// What `mergeplan bench` was told.
struct BenchArguments {
  // The question, the teacher and how is trained; `plan`, `strategy`, `parameters`, `output` and
  // `resume` stay empty.
  DistillArguments question;
  // "all", or names of plugins, paths of libraries or plan files; a plugin's parameters follow its
  // name: progressive:factor=4.
  std::vector<std::string> strategies = {"all"};
  std::string budget = "both";  // ParseBenchBudget
  int trials = 3;               // runs of each strategy, with the seeds seed, seed+1, ...
  // What samples of linear and network students are compared with; without data and folder nothing
  // is.
  judge::JudgeOptions judge;
};

struct BenchResult {
  Reference reference = Reference::kSurrogate;
  int teacher_steps = 0, student_steps = 0, dimensions = 0, trials = 0, batch = 0;
  std::string init, teacher, basis, schedule, training;
  BenchForecast forecast;
  std::vector<BenchRow> rows;  // by budget, then in the order asked for
  // How samples are judged, by which features; empty where they are not.
  std::string judged, features;
  std::optional<JudgedSamples> teacher_samples;
  bool stopped = false;  // by the user: rows that were not reached are left out
  std::int64_t peak_memory_bytes = 0;
};

// Trains every strategy on the same question with the same seeds. A strategy that fails is a row
// with its error; the others go on. Under the budget "per-merge" every merge makes `iterations`
// updates; under "total" a plan of M merges makes round(iterations (T-N)/M) each, which is what
// BOOT spends in all. The plan is made for the first and is the same under both; one of as many
// merges as BOOT has is trained once for both. Misuse for options that make no sense.
absl::StatusOr<BenchResult> RunBench(const BenchArguments& arguments, const BenchWatch& watch);

}  // namespace mergeplan
