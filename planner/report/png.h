#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mergeplan {

// Encodes 8-bit pixels as a PNG file in memory. `pixels` is row-major, height x width x channels,
// channels 1 (grey) or 3 (RGB). INVALID_ARGUMENT where the sizes do not agree; INTERNAL says what
// libpng said. O(pixels).
absl::StatusOr<std::string> EncodePng(int width, int height, int channels,
                                      absl::Span<const std::uint8_t> pixels);

// The same as an address for <img src>: "data:image/png;base64,...".
absl::StatusOr<std::string> PngDataUri(int width, int height, int channels,
                                       absl::Span<const std::uint8_t> pixels);

}  // namespace mergeplan
