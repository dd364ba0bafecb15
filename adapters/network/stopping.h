#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace mergeplan::network {

// What training still has to gain, fitted to the losses of the updates made so far (of one batch
// each), as a share of all that it would gain from the first update to number `updates`:
//
// The means of the last three quarters of the curve, each a quarter long, are read as a geometric
// approach to a limit; what is left of it until `updates` is summed up, but no more than a fall
// with the logarithm of the update would gain. The standard error of the last difference is added
// to it, so that noise delays a stop and does not cause one. 1 where fewer than kFewestUpdates are
// there, or nothing has been gained yet. O(losses).
inline constexpr std::int64_t kFewestUpdates = 64;
double RemainingGain(absl::Span<const double> losses, std::int64_t updates);

}  // namespace mergeplan::network
