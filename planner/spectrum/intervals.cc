#include "planner/spectrum/intervals.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace mergeplan {

absl::Status CheckConfidence(double confidence) {
  if (confidence > 0 && confidence < 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "confidence is ", confidence, "; expected a number between 0 and 1, such as 0.95"));
}

double NormalQuantile(double confidence) {
  // By bisection.
  double low = 0, high = 40;
  for (int i = 0; i < 200; ++i) {
    const double middle = low + (high - low) / 2;
    (std::erfc(middle / std::sqrt(2.0)) > 1 - confidence ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

void SetIntervals(Basis& basis, std::int64_t samples, double confidence) {
  const double n = static_cast<double>(samples), z = NormalQuantile(confidence);
  basis.interval = basis.kurtosis.empty() ? "gaussian" : "fourth-moment";
  basis.variances_low.clear();
  basis.variances_high.clear();
  for (std::size_t i = 0; i < basis.variances.size(); ++i) {
    const double kurtosis = basis.kurtosis.empty() ? 3.0 : basis.kurtosis[i];
    // Rounding may take two equal values (kurtosis 1, n = 2) below zero.
    const double width = z * std::sqrt(std::max(0.0, (kurtosis - (n - 3) / (n - 1)) / n));
    basis.variances_low.push_back(basis.variances[i] * std::exp(-width));
    basis.variances_high.push_back(basis.variances[i] * std::exp(width));
  }
}

void SetBootstrapIntervals(Basis& basis, const std::vector<double>& errors, double confidence) {
  const double z = NormalQuantile(confidence);
  basis.interval = "bootstrap";
  for (std::size_t i = 0; i < basis.variances.size(); ++i) {
    if (!std::isfinite(errors[i])) continue;
    basis.variances_low[i] = basis.variances[i] * std::exp(-z * errors[i]);
    basis.variances_high[i] = basis.variances[i] * std::exp(z * errors[i]);
  }
}

}  // namespace mergeplan
