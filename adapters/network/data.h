#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/data/samples.h"

namespace mergeplan::network {

// Reads samples (planner/data has the formats) into one float32 tensor [N, shape] on the CPU, in
// the units that a network was trained with: x = value * multiply + add of `scaling`
// (planner/spectrum/spectrum.h); empty: "-1:1" for pixels, else as stored. Samples of the same
// number of values are taken for the shape ([28, 28] for [1, 28, 28]). `most` rows at most, 0: all.
// INVALID_ARGUMENT for another size; RESOURCE_EXHAUSTED where they do not fit; errors of
// OpenSamples.
absl::StatusOr<at::Tensor> LoadData(const std::string& path, const SamplesOptions& options,
                                    const std::string& scaling,
                                    const std::vector<std::int64_t>& shape, std::int64_t most = 0);

}  // namespace mergeplan::network
