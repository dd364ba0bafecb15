#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "planner/spectrum/estimate.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {

// The spectrum of all samples behind several spectra of disjoint parts of one data set: mean,
// covariance, skewness and kurtosis along the data's own axes are those of one pass over
// everything, up to rounding, so that any map-reduce can compute them. Along the DCT's and the
// principal directions, which are new, the parts say nothing of fourth moments: the intervals there
// are those of normal data ("gaussian"), and shrinkage can be by "oas".
//
// Where a part has no covariance, the result has none.
//
// Of `options` those count that FinishSpectrum takes; source and its hash are the result's.
// INVALID_ARGUMENT, naming the part, where there is none, where shape or scaling differ, a part was
// shrunk, has fewer than 2 samples, a number of samples that its intervals deny, or samples in
// common with another (parts.h), and where parts of different data are mixed; RESOURCE_EXHAUSTED.
// O(parts d^2), and about 9 d^3 for the principal directions.
absl::StatusOr<Spectrum> MergeSpectra(const std::vector<Spectrum>& parts,
                                      const EstimateOptions& options);

}  // namespace mergeplan
