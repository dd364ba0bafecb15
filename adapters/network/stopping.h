#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace mergeplan::network {

// What training still has to gain, fitted to the losses of the updates made so far (of one batch
// each), as a share of all that it would gain from the first update to number `updates`:
//
// What the loss falls from the last quarter but one to the last one, and the standard error of
// that, is taken to go on with the logarithm of the update until `updates`. That is too much for
// every curve that falls more slowly per factor of updates the longer it falls, a power or an
// exponential among them, so on average it stops late and not early; noise delays it. 1 where fewer
// than kFewestUpdates are there, or nothing has been gained yet. O(losses).
inline constexpr std::int64_t kFewestUpdates = 64;
double RemainingGain(absl::Span<const double> losses, std::int64_t updates);

}  // namespace mergeplan::network
