#pragma once

#include <cstdint>
#include <functional>
#include <limits>
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

}  // namespace mergeplan
