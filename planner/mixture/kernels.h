#pragma once

#include <cstddef>

#include "planner/mixture/mixture.h"

// The inner loops of mixture steps, on tiles: kTileRows rows side by side, coordinate j of row b at
// [j * kTileRows + b], so that every loop runs over rows. A row's result does not depend on the
// rows beside it. For this folder only.
namespace mergeplan::mixture {

inline constexpr std::size_t kTileRows = 16;

// One step as plain arrays. c are the eigenvalues of C_k = alpha^2 Sigma_k + sigma^2 I, or of
// low-rank mixtures the diagonal alpha^2 D_k + sigma^2.
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

// Numbers of scratch that every function below needs.
std::size_t TileScratch(const StepTables& step);

// out = sum_k r_k(z) (A_k z + b_k). `out` is d x kTileRows and must not overlap z.
void StepTile(const StepTables& step, const double* z, double* out, double* scratch);

// The weights r_k(z) and log densities; r is K x kTileRows, top and sum are kTileRows each: the
// log density is top + log(sum).
void WeightTile(const StepTables& step, const double* z, double* r, double* top, double* sum,
                double* scratch);

// The step as above, and the derivative of the step along `direction`, both d x kTileRows. Nothing
// overlaps.
void DerivativeTile(const StepTables& step, const double* z, const double* direction, double* out,
                    double* derivative, double* scratch);

}  // namespace mergeplan::mixture
