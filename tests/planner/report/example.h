#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/report/report.h"

namespace mergeplan {

struct ExampleOptions {
  std::vector<std::int64_t> shape = {8, 8};
  int teacher_steps = 16;
  int student_steps = 1;
  std::vector<std::string> strategies = {"vanilla", "progressive", "boot", "consistency",
                                         "dp_custom"};
  std::string basis = "pca";
  std::string scaling = "-1:1";  // or "none"
  double data_scale = 1;
  Reference reference = Reference::kSurrogate;
  // Overrides the variances of the made-up pictures (then shape's size must agree).
  std::vector<double> variances = {};
};

// A spectrum of made-up smooth pictures, a plan (a hybrid: BOOT at the clean end on one merge of
// the noisy half, in every block) and runs of it and of the canonical strategies with the noise
// that the law of SGD allows. Owns what its input() points to.
class Example {
 public:
  explicit Example(const ExampleOptions& options);
  Example(const Example&) = delete;
  Example& operator=(const Example&) = delete;

  Spectrum spectrum;
  PlanDocument plan;
  ReportInput input;
};

// The plan of the example.
Plan HybridPlan(int teacher_steps, int blocks);

}  // namespace mergeplan
