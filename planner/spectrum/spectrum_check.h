#pragma once

#include "absl/status/status.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {

// What holds for every whole spectrum, written or read: sizes, finite values, intervals around
// their variances, words that fit the numbers. INVALID_ARGUMENT, whose message begins with the key
// of the file. O(d^2).
absl::Status CheckSpectrum(const Spectrum& spectrum);

}  // namespace mergeplan
