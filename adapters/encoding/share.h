#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace mergeplan::encoding {

// What --shard says: `index` of `count`, from 1.
struct Share {
  std::int64_t index = 1, count = 1;
};

// "2/4"; empty is all of it. INVALID_ARGUMENT.
absl::StatusOr<Share> ParseShare(const std::string& text);

}  // namespace mergeplan::encoding
