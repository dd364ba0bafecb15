#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/mixture/mixture.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {

// Mean (d) and covariance (d x d, row-major) of the whole mixture. O(K d^2), of low-rank mixtures
// O(K d^2 r).
struct MixtureMoments {
  std::vector<double> mean, covariance;
};
MixtureMoments Moments(const GaussianMixture& mixture);

// The Gaussian with the mixture's moments as a spectrum, so that plans can be made for it: the
// variances are exact (intervals of width 0), there are no samples (0), the shape is [d]. `source`
// names the mixture. The principal axes are recommended unless the covariance is diagonal within
// 1e-12 of its energy. INVALID_ARGUMENT where moments overflow; RESOURCE_EXHAUSTED. O(d^3).
absl::StatusOr<Spectrum> MixtureSpectrum(const GaussianMixture& mixture, std::string source);

}  // namespace mergeplan
