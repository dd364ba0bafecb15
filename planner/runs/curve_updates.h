#pragma once

#include <cstdint>
#include <vector>

namespace mergeplan {

// The updates (0-based) of a training at which its loss is recorded: all when there are up to 64,
// else about 64, close together at the start where it falls fastest; always the first and the last.
std::vector<std::int64_t> CurveUpdates(std::int64_t updates);

}  // namespace mergeplan
