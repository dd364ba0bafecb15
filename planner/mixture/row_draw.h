#pragma once

#include <cmath>
#include <cstddef>

#include "planner/base/host_device.h"
#include "planner/mixture/row_numbers.h"
#include "planner/mixture/row_step.h"

// One row of the law of a mixture at a level, for the processor's loop (draw.cc) and a device's
// threads. The same digits on both but for the rounding of log, sin and cos.
namespace mergeplan::mixture {

struct DrawTables {
  CovarianceKind kind = CovarianceKind::kDiagonal;
  std::size_t K = 0, d = 0, r = 0;
  double alpha = 1, sigma = 0;              // the level
  const double* below = nullptr;            // K: sums of the weights up to each component
  const double* means = nullptr;            // K x d
  const double* variances = nullptr;        // K x d; of kFull the eigenvalues
  const double* axes_transposed = nullptr;  // of kFull: K x d x d
  const double* factors = nullptr;          // of kLowRank: K x d x r
};

// Component k with the probability of its weight.
MERGEPLAN_HOST_DEVICE std::size_t DrawComponent(const DrawTables& t, RowNumbers& numbers) {
  const double u = numbers.NextUniform();
  std::size_t first = 0, end = t.K;  // the first whose sum is above u
  while (first < end) {
    const std::size_t middle = (first + end) / 2;
    if (t.below[middle] > u) {
      end = middle;
    } else {
      first = middle + 1;
    }
  }
  // The weights may sum to a little less than 1.
  return first < t.K ? first : t.K - 1;
}

// z ~ N(alpha mean_k, alpha^2 Sigma_k + sigma^2 I), d numbers; `normal` is scratch, d + r numbers.
MERGEPLAN_HOST_DEVICE void DrawState(const DrawTables& t, std::size_t k, RowNumbers& numbers,
                                     Lane normal, Lane z) {
  const std::size_t d = t.d, r = t.r;
  for (std::size_t i = 0; i < d + r; ++i) normal[i] = numbers.NextNormal();
  for (std::size_t j = 0; j < d; ++j) {
    normal[j] *= std::sqrt(t.alpha * t.alpha * t.variances[k * d + j] + t.sigma * t.sigma);
  }
  const bool full = t.kind == CovarianceKind::kFull;
  for (std::size_t j = 0; j < d; ++j) {
    double sum = full ? 0 : normal[j];
    if (full) {
      const double* row = t.axes_transposed + (k * d + j) * d;
      for (std::size_t i = 0; i < d; ++i) sum += row[i] * normal[i];
    }
    const double* factor = t.factors + (k * d + j) * r;
    for (std::size_t i = 0; i < r; ++i) sum += t.alpha * factor[i] * normal[d + i];
    z[j] = t.alpha * t.means[k * d + j] + sum;
  }
}

}  // namespace mergeplan::mixture
