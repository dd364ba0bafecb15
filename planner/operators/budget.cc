#include "planner/operators/budget.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"

namespace mergeplan {

Budget Budget::Flow(double train_time) {
  Budget budget;
  budget.train_time = train_time;
  return budget;
}

Budget Budget::Sgd(double lr, std::int64_t iterations, int batch, double feature_norm) {
  Budget budget;
  budget.sgd = true;
  budget.lr = lr;
  budget.iterations = iterations;
  budget.batch = batch;
  budget.feature_norm = feature_norm;
  return budget;
}

double Budget::Gamma(double n) const {
  if (!sgd) return std::exp(-2 * train_time * n);
  return std::exp(static_cast<double>(iterations) * std::log1p(-StepSize(n)));
}

double Budget::GammaRounding(double n) const {
  // The exponent has a relative error of some 5 units, which its size turns into one of gamma; with
  // SGD the step size's error is divided by 1 - g in the logarithm, and |log(1 - g)| <= g / (1 -
  // g).
  // Beyond 1e6 gamma has long been 0, whatever overflows.
  if (!sgd) return std::min(4 + 10 * train_time * n, 1e6);
  const double g = StepSize(n);
  return 4 + 10 * static_cast<double>(iterations) * g / (1 - g);
}

double Budget::OneMinusGamma(double n) const {
  if (!sgd) return -std::expm1(-2 * train_time * n);
  return -std::expm1(static_cast<double>(iterations) * std::log1p(-StepSize(n)));
}

Budget Budget::SharedOver(int merges, int total_merges) const {
  if (merges <= 0) return *this;
  Budget out = *this;
  out.train_time = std::min(train_time * (static_cast<double>(total_merges) / merges),
                            std::numeric_limits<double>::max());
  // Multiplied before it is divided, so that an exact half is one.
  out.iterations = std::max<std::int64_t>(
      1, std::llround(static_cast<double>(iterations) * total_merges / merges));
  return out;
}

absl::Status Budget::Validate(double largest_n) const {
  if (!sgd) {
    if (std::isfinite(train_time) && train_time > 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrFormat("train time is %g, expected a positive, finite number", train_time));
  }
  if (!std::isfinite(lr) || lr <= 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("learning rate is %g, expected a positive, finite number", lr));
  }
  if (iterations < 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("iterations is %d, expected 1 or more", iterations));
  }
  if (batch < 1)
    return absl::InvalidArgumentError(absl::StrFormat("batch is %d, expected 1 or more", batch));
  if (!std::isfinite(feature_norm) || feature_norm <= 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("feature norm is %g, expected a positive, finite number", feature_norm));
  }
  if (lr * feature_norm * largest_n >= 0.5) {
    return absl::InvalidArgumentError(
        absl::StrFormat("learning rate %g is too large: lr · feature norm · largest input variance "
                        "= %g · %g · %g = %g, and SGD needs "
                        "it below 0.5; the largest usable rate is just below %.6g",
                        lr, lr, feature_norm, largest_n, lr * feature_norm * largest_n,
                        0.5 / (feature_norm * largest_n)));
  }
  return absl::OkStatus();
}

std::string Budget::ToString() const {
  if (!sgd) return absl::StrFormat("gradient flow, s = %g per merge", train_time);
  return absl::StrFormat("SGD, lr = %g, %d updates of batch %d per merge, feature norm %g", lr,
                         iterations, batch, feature_norm);
}

}  // namespace mergeplan
