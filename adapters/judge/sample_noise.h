#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace mergeplan::judge {

// Standard normal numbers that samples begin with, float32 [rows, shape] on the CPU, for the
// samples first .. first + rows - 1 of a seed. Every sample has its own numbers, named by (seed,
// sample): whoever samples whatever from the same seed begins with the same noise, in batches of
// any size. RESOURCE_EXHAUSTED. O(numbers).
absl::StatusOr<at::Tensor> SampleNoise(std::uint64_t seed, std::uint64_t first, std::int64_t rows,
                                       const std::vector<std::int64_t>& shape);

}  // namespace mergeplan::judge
