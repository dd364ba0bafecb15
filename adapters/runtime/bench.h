#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/runtime/arguments.h"
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
  std::string budget = "both";  // per-merge, total, both
  int trials = 3;               // runs of each strategy, with the seeds seed, seed+1, ...
};

// Mean and spread over trials.
struct Spread {
  double mean = 0;
  double deviation = 0;   // with n-1; 0 for one trial
  double half_width = 0;  // of the 95 % interval of the mean (Student's t); 0 for one trial
};
// One value or more.
Spread SpreadOf(const std::vector<double>& values);

// One strategy under one budget.
struct BenchRow {
  std::string strategy;         // as it was asked for
  bool total_budget = false;    // every strategy trains as long as BOOT would, in all
  std::int64_t iterations = 0;  // updates of one merge
  int merges = 0, rounds = 0;
  double predicted = 0;  // objective of the plan in the linear model, for the reference asked for
  // The same with the noise of SGD, the mean of what is achieved; NaN where nobody knows.
  double expected = std::numeric_limits<double>::quiet_NaN();
  Spread achieved;            // for the reference asked for
  Spread achieved_surrogate;  // NaN where the students are not linear
  Spread achieved_teacher;
  std::int64_t updates = 0, teacher_calls = 0;  // of one trial
  double seconds = 0;                           // of training one trial, mean
  std::string error;  // why there are no figures; then the rest has no meaning
};

struct BenchResult {
  Reference reference = Reference::kSurrogate;
  int teacher_steps = 0, student_steps = 0, dimensions = 0, trials = 0, batch = 0;
  std::string init, teacher, basis, schedule, training;
  std::vector<BenchRow> rows;  // by budget, then in the order asked for
  bool stopped = false;        // by the user: rows that were not reached are left out
  std::int64_t peak_memory_bytes = 0;
};

// What is about to be trained, before it is.
struct BenchForecast {
  int runs = 0;
  std::int64_t updates = 0, teacher_calls = 0;
  std::vector<std::string> left_out;  // of "all", and why
};

struct BenchWatch {
  std::function<bool()> stop = [] { return false; };
  std::function<void(const BenchForecast&)> forecast = [](const BenchForecast&) {};
  // A run begins.
  std::function<void(const BenchRow& row, int trial)> begin = [](const BenchRow&, int) {};
};

// Trains every strategy on the same question with the same seeds. A strategy that fails is a row
// with its error; the others go on. Under the budget "per-merge" every merge makes `iterations`
// updates; under "total" a plan of M merges makes round(iterations (T-N)/M) each, which is what
// BOOT spends in all. The plan is made for the first and is the same under both. Misuse for options
// that make no sense.
absl::StatusOr<BenchResult> RunBench(const BenchArguments& arguments, const BenchWatch& watch);

}  // namespace mergeplan
