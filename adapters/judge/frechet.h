#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mergeplan::judge {

// The Gaussian with the moments of a set of features.
struct FeatureGaussian {
  std::int64_t rows = 0;           // that it was estimated from
  std::vector<double> mean;        // d
  std::vector<double> covariance;  // d x d, row-major, symmetric

  int dimensions() const { return static_cast<int>(mean.size()); }
};

// Mean and covariance (with rows - 1) of rows x d numbers, in float64, centred before they are
// multiplied. INVALID_ARGUMENT for fewer than two rows, sizes that do not fit, or numbers that are
// not finite. O(rows d^2).
absl::StatusOr<FeatureGaussian> FitFeatures(absl::Span<const double> features, int dimensions);

// The squared Frechet (2-Wasserstein) distance of two Gaussians,
//   |m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2)).
// The last trace is the sum of the singular values of C1^(1/2) C2^(1/2), which loses no digits
// where a covariance is singular (fewer rows than dimensions). Not below 0. INVALID_ARGUMENT for
// different dimensions, numbers that are not finite, or a covariance with an eigenvalue below
// -1e-6 of its largest. O(d^3), float64.
absl::StatusOr<double> FrechetDistance(const FeatureGaussian& a, const FeatureGaussian& b);

}  // namespace mergeplan::judge
