#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/spectrum/dct.h"
#include "planner/spectrum/estimate.h"
#include "planner/spectrum/leading.h"
#include "planner/spectrum/second_pass.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {

// Reads the data once more along the given directions (SecondPass::fourth_norm in data units).
using SecondPassReader =
    std::function<absl::StatusOr<SecondPass>(const std::vector<double>& vectors, const Dct* dct)>;

// What the options ask for at d dimensions.
bool WantsAllDirections(const EstimateOptions& options, int d);
bool WantsLeadingDirections(const EstimateOptions& options, int d);
LeadingOptions LeadingOptionsOf(const EstimateOptions& options);

// From samples, shape, mean, covariance and, where known, the diagonal's skewness and kurtosis to a
// whole spectrum: bases, leading directions (from the covariance), intervals, shrinkage,
// recommendation. Used on what one pass or several
// merged ones have found. `second` may be empty.
absl::Status FinishSpectrum(Spectrum& spectrum, const EstimateOptions& options,
                            const SecondPassReader& second);

}  // namespace mergeplan
