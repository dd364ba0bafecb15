#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace mergeplan {

// Mean and spread over trials.
struct Spread {
  double mean = 0;
  double deviation = 0;   // with n-1; 0 for one trial
  double half_width = 0;  // of the 95 % interval of the mean (Student's t); 0 for one trial
};
// One value or more.
Spread SpreadOf(const std::vector<double>& values);

// How far one trained jump is from the teacher's steps over its range; means over trials.
struct LevelFigure {
  int first = 0, last = 0;  // it leads from level `last` to level `first` - 1
  double error = 0, standard_error = 0;
};

// What samples are like beside a reference (adapters/judge).
struct JudgedSamples {
  bool compared = false;              // else there is a picture only
  Spread frechet, precision, recall;  // over trials
  // From the teacher's samples for the same noise (judge::Verdict); none of the teacher itself.
  std::optional<Spread> distance;
  std::int64_t samples = 0;  // of each trial
  std::string grid;          // picture of the first trial's; empty: none
};

// How quick the machine is, by a short probe; NaN where none was made.
struct BenchSpeed {
  // Seconds of one step of the teacher for one row, and of one update without its target.
  double row_step = std::numeric_limits<double>::quiet_NaN();
  double update = std::numeric_limits<double>::quiet_NaN();
};
// What one trial needs beside its counts.
struct BenchNeeds {
  double seconds = std::numeric_limits<double>::quiet_NaN();
  std::int64_t snapshot_bytes = 0;  // that frozen networks take at most
};

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
  std::int64_t peak_memory_bytes = 0;           // of the process while it was trained; 0: unknown
  std::vector<LevelFigure> levels;              // of network students, one a merge
  std::optional<JudgedSamples> judged;
  std::string error;  // why there are no figures; then the rest has no meaning
};

// What is about to be trained, before it is.
struct BenchForecast {
  int runs = 0;
  std::int64_t updates = 0, teacher_calls = 0;
  double seconds = std::numeric_limits<double>::quiet_NaN();  // NaN: nobody knows
  std::int64_t snapshot_bytes = 0;                            // at most at a time
  std::vector<std::string> above;     // stated limits that this is above, and by what
  std::vector<std::string> left_out;  // of "all", and why
};

struct BenchWatch {
  std::function<bool()> stop = [] { return false; };
  std::function<void(const BenchForecast&)> forecast = [](const BenchForecast&) {};
  // A run begins.
  std::function<void(const BenchRow& row, int trial)> begin = [](const BenchRow&, int) {};
};

}  // namespace mergeplan
