#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/spectrum/estimate.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {

// Central moments of `count` samples, wherever they were computed: the mean and the sums of powers
// of the deviations from it, d each. In data units.
struct CentralMoments {
  std::int64_t count = 0;
  std::vector<std::int64_t> shape;  // of a sample; its product is d
  std::vector<double> mean, m2;     // d
  std::vector<double> m3, m4;       // d, or both empty where they are not known
  std::vector<double> comoment;     // d x d, or empty: sums of products of deviations
};

// Adds the samples behind `b`, which are others than those behind `a`, by the pairwise formulas of
// Chan, Golub and LeVeque (1979) and Pebay (2008). Both are of one shape; what one of them does not
// know, the sum does not.
void AddMoments(const CentralMoments& b, CentralMoments& a);

// The spectrum that one pass over these samples gives, up to rounding. Intervals along the data's
// own axes rest on the fourth moments where they are known; along the DCT's and the principal
// directions, of which these moments say nothing, they are those of normal data ("gaussian").
//
// Of `options` those count that FinishSpectrum takes, and source, scaling, parts and confidence.
// INVALID_ARGUMENT, naming what and where, for fewer than 2 samples, sizes that do not fit, numbers
// that are not finite, sums of squares below zero, a comoment whose diagonal is not m2 (to 1e-9) or
// that is not symmetric (to 1e-9 of its largest value), moments that no samples have (m4 below
// m2^2 / count, m3^2 above m2 m4, directions of negative variance), a confidence outside (0, 1),
// and a shrinkage that needs what is missing; RESOURCE_EXHAUSTED.
absl::StatusOr<Spectrum> SpectrumFromMoments(CentralMoments moments,
                                             const EstimateOptions& options);

}  // namespace mergeplan
