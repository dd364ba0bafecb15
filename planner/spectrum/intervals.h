#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {

// INVALID_ARGUMENT for what is no share between 0 and 1.
absl::Status CheckConfidence(double confidence);

// z with P(|N(0,1)| < z) = confidence, 0 < confidence < 1.
double NormalQuantile(double confidence);

// Sets the interval of each variance from n values with the basis's kurtosis, 3 where it has none
// (EstimateSpectrum's comment has the formula), and what they are called.
void SetIntervals(Basis& basis, std::int64_t samples, double confidence);
// The same from standard errors of the logarithms (d); those that are not finite leave the interval
// as it is.
void SetBootstrapIntervals(Basis& basis, const std::vector<double>& errors, double confidence);

}  // namespace mergeplan
