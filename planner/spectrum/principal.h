#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/spectrum/dct.h"
#include "planner/spectrum/kernels.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {

// Sets vectors and pca.variances from the covariance: eigenvectors by falling eigenvalue, each with
// its largest component positive (the first of those that are as large up to rounding), so that the
// result is reproducible. RESOURCE_EXHAUSTED; INTERNAL where the iteration does not end; CANCELLED
// where `stop` (estimate.h), which may be empty, says so: then the spectrum has lost its
// covariance. About 9 d^3.
absl::Status SetPrincipalDirections(Spectrum& spectrum, const Kernels& kernels,
                                    const std::function<bool()>& stop);

// ||offdiag(V C V^T)||_F^2 / ||C||_F^2 for the spectrum's vectors V, a few rows at a time. 4 d^3.
absl::StatusOr<double> RotatedOffDiagonalEnergy(const Spectrum& spectrum, const Kernels& kernels,
                                                int threads);

// Sets dct.variances, the diagonal of D C D^T, and its off-diagonal energy (the turned matrix has
// the norm of C). O(d^2 (H + W)).
absl::Status SetDctVariances(Spectrum& spectrum, const Dct& dct, int threads);

double SquaredNorm(const std::vector<double>& values);

}  // namespace mergeplan
