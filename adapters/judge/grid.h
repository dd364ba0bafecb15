#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mergeplan::judge {

// Samples as one picture: how many to a row, and how large.
struct GridOptions {
  int columns = 0;       // 0: about as many as rows
  int least_width = 64;  // smaller samples are enlarged by a whole factor until they are this wide
};

// Can samples of this shape be drawn: [H, W], [1, H, W] (grey) or [3, H, W] (colour)?
// INVALID_ARGUMENT says what the shape is.
absl::Status CheckPicture(const std::vector<std::int64_t>& shape);

// A PNG file of `count` samples (count x shape, row-major, in the units of the data) from left to
// right and from above to below, in reading order. `scaling` says how pixels 0..255 became data
// (ParseScaling: "-1:1"); of "none" or "" the least number is black and the largest white.
// INVALID_ARGUMENT for no samples, numbers that are not finite, or a shape that is no picture.
// O(pixels).
absl::StatusOr<std::string> GridPng(absl::Span<const float> samples,
                                    const std::vector<std::int64_t>& shape,
                                    const std::string& scaling, const GridOptions& options = {});

}  // namespace mergeplan::judge
