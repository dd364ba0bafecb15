#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "adapters/vae_latent/config.h"

namespace mergeplan::autoencoding {

struct DataRequest {
  std::string path, array;
  std::string size;       // "32" or "32x48": pictures are resized to it; "": as they are
  std::string scaling;    // "": -1:1 for pixels, else as stored
  std::int64_t rows = 0;  // at most; 0: all
};

struct TrainingPictures {
  at::Tensor pictures;  // [N, C, H, W], float32, on the CPU
  std::string scaling;  // how values became these
};

// Reads pictures as `mergeplan encode` makes them for the same network. INVALID_ARGUMENT for none,
// and where size or channels do not fit; RESOURCE_EXHAUSTED where they do not fit into memory;
// errors of OpenSamples.
absl::StatusOr<TrainingPictures> LoadPictures(const DataRequest& request, const vae::Config& config,
                                              const std::string& model);

}  // namespace mergeplan::autoencoding
