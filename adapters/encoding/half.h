#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/types/span.h"

namespace mergeplan::encoding {

// Appends IEEE halves in the machine's order, rounded to nearest even; what is beyond their range
// becomes infinite.
inline void AppendHalves(absl::Span<const float> values, std::string* bytes) {
  for (const float value : values) {
    const _Float16 half = static_cast<_Float16>(value);
    char stored[sizeof half];
    std::memcpy(stored, &half, sizeof half);
    bytes->append(stored, sizeof half);
  }
}

}  // namespace mergeplan::encoding
