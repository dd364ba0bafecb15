#pragma once

#include <Eigen/Core>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mergeplan {

// Squared 2-Wasserstein distance between N(mean1, cov1) and N(mean2, cov2)
// (eq:w2_gaussian_closed_form):
//   |mean1 - mean2|^2 + tr(cov1 + cov2 - 2 (cov1^{1/2} cov2 cov1^{1/2})^{1/2}).
// Covariances d x d, symmetric, positive semidefinite; singular ones are fine (eigenvalues that
// rounding made negative count as 0). The result is >= 0; its absolute error is about
// 1e-15 d tr(cov1 + cov2). INVALID_ARGUMENT for sizes that differ, entries that are not finite, a
// covariance that is not symmetric or clearly not semidefinite. O(d^3).
absl::StatusOr<double> W2Squared(const Eigen::VectorXd& mean1, const Eigen::MatrixXd& cov1,
                                 const Eigen::VectorXd& mean2, const Eigen::MatrixXd& cov2);

// The same for diagonal covariances, given as variances >= 0 of equal length d:
//   sum_k (mean1_k - mean2_k)^2 + (sd1_k - sd2_k)^2. O(d).
double W2SquaredDiagonal(absl::Span<const double> mean1, absl::Span<const double> variances1,
                         absl::Span<const double> mean2, absl::Span<const double> variances2);

// The outputs of two diagonal linear maps for z ~ N(0, I) (eq:w2_diag_linear_maps):
// sum_k (|a_k| - |b_k|)^2. O(d).
double W2SquaredLinearMaps(absl::Span<const double> a, absl::Span<const double> b);

}  // namespace mergeplan
