#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace mergeplan {

// How long each merge trains: the paper's gradient-flow time, or a number of SGD updates.
struct Budget {
  bool sgd = false;

  double train_time = 0;  // s of prop:student_gradient_flow; used where !sgd

  // SGD on the batch mean of the squared error summed over dimensions; used where sgd.
  double lr = 0;
  std::int64_t iterations = 0;
  int batch = 64;           // moves the spread of the result, not its mean
  double feature_norm = 1;  // squared norm of the feature that feeds the operator

  static Budget Flow(double train_time);
  static Budget Sgd(double lr, std::int64_t iterations, int batch = 64, double feature_norm = 1);

  // Step size of the mean recursion, g = 2 lr feature_norm n; gamma = (1 - g)^iterations.
  double StepSize(double n) const { return 2 * lr * feature_norm * n; }
  // gamma for an input of variance n (prop:student_gradient_flow, or its SGD form).
  double Gamma(double n) const;
  // Bound on the relative rounding error of Gamma(n), in units of 2^-53.
  double GammaRounding(double n) const;
  // 1 - gamma without cancellation.
  double OneMinusGamma(double n) const;

  // The budget of one merge when M merges share what `total_merges` merges would spend: time s
  // total/M, updates round(k total/M), at least 1. M = 0 gives this budget.
  Budget SharedOver(int merges, int total_merges) const;

  // Positive, finite; with SGD lr·feature_norm·n < 1/2 for the largest n (else the error names the
  // largest usable lr).
  absl::Status Validate(double largest_n) const;

  std::string ToString() const;
  friend bool operator==(const Budget&, const Budget&) = default;
};

}  // namespace mergeplan
