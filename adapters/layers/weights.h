#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "adapters/layers/registry.h"
#include "planner/data/safetensors.h"

namespace mergeplan::layers {

// Fills all leaves from the files, converted to `dtype`. Names of attention weights as old
// checkpoints have them (query, key, value, proj_attn) are taken too. INVALID_ARGUMENT names the
// first tensor that is missing, that the network does not have, or that has another shape, with
// what was found and expected, before memory is allocated; and any that holds a number that is not
// finite. Large files are read by several threads, straight into place where the types agree.
absl::Status LoadWeights(Registry& registry,
                         const std::vector<std::unique_ptr<SafetensorsFile>>& files,
                         at::ScalarType dtype, at::Device device);

struct SaveOptions {
  std::optional<at::ScalarType> dtype;        // as the leaves have it
  std::int64_t shard_bytes = 10'000'000'000;  // more than this goes into several files
};

// Writes diffusion_pytorch_model.safetensors, or numbered files with an index, into `folder`. A
// number that is not finite, or not in a narrower dtype, is INVALID_ARGUMENT and names its tensor.
absl::Status WriteWeights(const Registry& registry, const std::string& folder,
                          const SaveOptions& options);

// "F32" for kFloat; empty for what weights are not stored in.
std::string SafetensorsDtype(at::ScalarType dtype);

}  // namespace mergeplan::layers
