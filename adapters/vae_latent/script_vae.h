#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "adapters/vae_latent/vae.h"

namespace mergeplan::vae {

// A TorchScript encoder and decoder behind a sidecar; errors as of ReadVaeSidecar, INVALID_ARGUMENT
// for a file that is no TorchScript.
absl::StatusOr<std::unique_ptr<Vae>> LoadScriptVae(const std::string& path, at::Device device);

// OpenEncoder (vae.h).
absl::StatusOr<std::unique_ptr<Vae>> LoadScriptEncoder(const std::string& path, at::Device device);

}  // namespace mergeplan::vae
