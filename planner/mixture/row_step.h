#pragma once

#include <cstddef>

#include "planner/base/exponential.h"
#include "planner/base/host_device.h"
#include "planner/mixture/elements.h"
#include "planner/mixture/step_tables.h"

// The teacher's step for one row, as one thread of a device takes it: the loops of kernels.cc for a
// row instead of a tile, with additions in the same order. Compiled without contraction on both
// sides (-ffp-contract=off, -fmad=false) the digits are those of MixtureStep::Apply.
namespace mergeplan::mixture {

// Numbers of one row among those of many rows side by side: number i stands at at[i stride].
struct Lane {
  double* at;
  std::size_t stride;

  MERGEPLAN_HOST_DEVICE double& operator[](std::size_t i) const { return at[i * stride]; }
  MERGEPLAN_HOST_DEVICE Lane From(std::size_t i) const { return {at + i * stride, stride}; }
};

// Numbers of scratch for RowStep.
MERGEPLAN_HOST_DEVICE std::size_t RowStepScratch(std::size_t K, std::size_t d, std::size_t r) {
  return K + 2 * d + r;
}

// Pieces of the scratch.
struct RowPieces {
  Lane weight;  // K: log densities, then weights
  Lane seen;    // d: what a component sees of the deviation from its centre
  Lane work;    // d
  Lane small;   // r

  MERGEPLAN_HOST_DEVICE RowPieces(const StepTables& s, Lane scratch)
      : weight(scratch),
        seen(scratch.From(s.K)),
        work(scratch.From(s.K + s.d)),
        small(scratch.From(s.K + 2 * s.d)) {}
};

// Fills seen of component k: the deviation itself (diagonal), along the eigenvectors (full), or
// what the low-rank part explains of it.
MERGEPLAN_HOST_DEVICE void RowSee(const StepTables& s, std::size_t k, Lane z, const RowPieces& p) {
  const std::size_t d = s.d, r = s.r;
  const double* centre = s.centre + k * d;
  if (s.kind == CovarianceKind::kDiagonal) {
    for (std::size_t j = 0; j < d; ++j) p.seen[j] = z[j] - centre[j];
    return;
  }
  const bool full = s.kind == CovarianceKind::kFull;
  for (std::size_t j = 0; j < d; ++j) {
    const double scale = full ? 1.0 : s.inverse_root[k * d + j];
    p.work[j] = scale * (z[j] - centre[j]);
  }
  const std::size_t count = full ? d : r;
  const double* axes = s.axes + k * count * d;
  const Lane& along = full ? p.seen : p.small;
  for (std::size_t i = 0; i < count; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < d; ++j) sum += axes[i * d + j] * p.work[j];
    along[i] = sum;
  }
  if (full) return;
  for (std::size_t i = 0; i < r; ++i) p.work[i] = s.pull[k * r + i] * p.small[i];
  const double* back = s.axes_transposed + k * r * d;
  for (std::size_t j = 0; j < d; ++j) {
    double sum = 0;
    for (std::size_t i = 0; i < r; ++i) sum += back[j * r + i] * p.work[i];
    p.seen[j] = sum * s.root[k * d + j];
  }
}

// The squared distance from component k, after RowSee.
MERGEPLAN_HOST_DEVICE double RowDistance(const StepTables& s, std::size_t k, Lane z,
                                         const RowPieces& p) {
  const std::size_t at = k * s.d;
  const bool low_rank = s.kind == CovarianceKind::kLowRank;
  double sum = 0;
  for (std::size_t j = 0; j < s.d; ++j) {
    const double local = low_rank ? (z[j] - s.centre[at + j]) - s.alpha2 * p.seen[j] : p.seen[j];
    sum += Distance(s.inverse[at + j], local);
  }
  if (!low_rank) return sum;
  for (std::size_t i = 0; i < s.r; ++i) sum += Distance(s.share[k * s.r + i], p.small[i]);
  return sum;
}

// out += weight (A_k z + b_k), after RowSee.
MERGEPLAN_HOST_DEVICE void RowAddExpert(const StepTables& s, std::size_t k, Lane z, double weight,
                                        const RowPieces& p, Lane out) {
  const std::size_t d = s.d;
  const double* gain = s.gain + k * d;
  const double* target = s.target + k * d;
  if (s.kind == CovarianceKind::kDiagonal) {
    for (std::size_t j = 0; j < d; ++j) out[j] += weight * Expert(target[j], gain[j], p.seen[j]);
    return;
  }
  if (s.kind == CovarianceKind::kLowRank) {
    for (std::size_t j = 0; j < d; ++j) {
      out[j] += weight * LowRankExpert(target[j], gain[j], s.cross, s.alpha2,
                                       z[j] - s.centre[k * d + j], p.seen[j]);
    }
    return;
  }
  for (std::size_t j = 0; j < d; ++j) {
    p.work[j] = weight * (gain[j] * p.seen[j]);
    out[j] += weight * target[j];
  }
  const double* back = s.axes_transposed + k * d * d;
  for (std::size_t i = 0; i < d; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < d; ++j) sum += back[i * d + j] * p.work[j];
    out[i] += sum;
  }
}

// out = sum_k r_k(z) (A_k z + b_k), d numbers each; nothing overlaps. Cost as MixtureStep's, twice
// for what a component sees.
MERGEPLAN_HOST_DEVICE void RowStep(const StepTables& s, Lane z, Lane out, Lane scratch) {
  const RowPieces p(s, scratch);
  double top = 0;
  for (std::size_t k = 0; k < s.K; ++k) {
    RowSee(s, k, z, p);
    const double log_density = s.log_weight[k] - 0.5 * RowDistance(s, k, z, p);
    p.weight[k] = log_density;
    // The first one is taken as it is, unless it is NaN: then everything becomes NaN below.
    top = k == 0 || log_density > top ? log_density : top;
  }
  double total = 0;
  for (std::size_t k = 0; k < s.K; ++k) {
    const double e = ExpOfNegative(p.weight[k] - top);
    p.weight[k] = e;
    total += e;
  }
  for (std::size_t j = 0; j < s.d; ++j) out[j] = 0;
  for (std::size_t k = 0; k < s.K; ++k) {
    const double weight = p.weight[k] / total;
    if (weight == 0.0) continue;
    RowSee(s, k, z, p);
    RowAddExpert(s, k, z, weight, p, out);
  }
}

}  // namespace mergeplan::mixture
