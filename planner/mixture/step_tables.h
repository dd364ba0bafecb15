#pragma once

#include <cstddef>

// One step of a mixture's teacher as plain arrays, for the processor's loops and a device's
// kernels. C++17, as device code is.
namespace mergeplan {

// How the covariances of a mixture's components are given.
enum class CovarianceKind {
  kDiagonal,  // Diag(variances[k])
  kLowRank,   // factors[k] factors[k]^T + Diag(variances[k])
  kFull,      // covariances[k]
};

namespace mixture {

// c are the eigenvalues of C_k = alpha^2 Sigma_k + sigma^2 I, or of low-rank mixtures the diagonal
// alpha^2 D_k + sigma^2.
struct StepTables {
  CovarianceKind kind = CovarianceKind::kDiagonal;
  std::size_t K = 0, d = 0, r = 0;
  double alpha2 = 0;                   // alpha^2
  double cross = 0;                    // alpha to_alpha
  const double* log_weight = nullptr;  // K: log weight - log sqrt(det 2 pi C_k)
  const double* centre = nullptr;      // K x d: alpha mean
  const double* target = nullptr;      // K x d: to_alpha mean
  const double* inverse = nullptr;     // K x d: 1 / c
  const double* gain = nullptr;        // K x d: (alpha to_alpha lambda + sigma to_sigma) / c
  const double* axes = nullptr;        // full K x d x d, low-rank K x r x d, an axis per row
  const double* axes_transposed = nullptr;
  // Of low-rank mixtures. With E = Diag(c) and E^(-1/2) F = P S Q^T the axes are P^T, and
  // C = E^(1/2) (I + alpha^2 P S^2 P^T) E^(1/2).
  const double* root = nullptr;          // K x d: sqrt(c)
  const double* inverse_root = nullptr;  // K x d
  const double* pull = nullptr;          // K x r: S^2 / (1 + alpha^2 S^2)
  const double* share = nullptr;         // K x r: alpha^2 S^2 / (1 + alpha^2 S^2)^2
};

}  // namespace mixture
}  // namespace mergeplan
