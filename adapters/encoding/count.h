#pragma once

#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "planner/data/samples.h"

namespace mergeplan::encoding {

// How many samples are left of `source`, at most `limit`, by reading them. Errors of the source.
absl::StatusOr<std::int64_t> CountSamples(
    SampleSource& source, std::int64_t limit = std::numeric_limits<std::int64_t>::max());

}  // namespace mergeplan::encoding
