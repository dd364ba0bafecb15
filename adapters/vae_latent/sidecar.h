#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace mergeplan::vae {

// What a TorchScript autoencoder does not say itself: vae.toml beside it.
struct Sidecar {
  std::string encoder, decoder;  // paths of the files; one of them may be empty
  std::string pixels = "-1:1";   // what its images are: "LOW:HIGH"
  std::int64_t image_channels = 3;
  std::int64_t latent_channels = 4;
  std::int64_t reduction = 8;
  std::string output = "mean";  // of the encoder: mean, or mean,log_variance along the channels
  double scaling_factor = 1, shift_factor = 0;
};

// INVALID_ARGUMENT names the file and the key; NOT_FOUND a file that is missing.
absl::StatusOr<Sidecar> ReadVaeSidecar(const std::string& path);

}  // namespace mergeplan::vae
