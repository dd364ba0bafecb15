#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/vae_latent/autoencoder.h"

namespace mergeplan::vae {

struct VaeDescription {
  std::string kind;                   // "AutoencoderKL", "AutoencoderTiny", "TorchScript"
  std::string path;                   // the folder or the sidecar
  std::string sha256;                 // of its description and weights
  std::string pixels = "-1:1";        // the range of its images, as Scaling has it
  std::int64_t image_channels = 3;    // that Encode takes
  std::int64_t picture_channels = 3;  // that Decode gives
  std::int64_t latent_channels = 4;
  std::int64_t reduction = 8;  // h = H / reduction
  bool has_variance = false;   // does Encode give a log variance?
};

// An autoencoder of any origin. Images are [B, C, H, W] in the range `pixels`, H and W multiples of
// `reduction`; latents [B, latent_channels, h, w]. Errors of Autoencoder; INVALID_ARGUMENT where a
// network answers with another shape than its description says.
class Vae {
 public:
  virtual ~Vae() = default;
  virtual const VaeDescription& description() const = 0;
  virtual absl::StatusOr<Encoded> Encode(const at::Tensor& image) = 0;
  virtual absl::StatusOr<at::Tensor> Decode(const at::Tensor& latent) = 0;
  // What a denoiser is given of a latent, and back.
  virtual at::Tensor Scale(const at::Tensor& latent) const = 0;
  virtual at::Tensor Unscale(const at::Tensor& scaled) const = 0;
};

// `path` is a diffusers folder (its own or a pipeline's, with vae/), or the sidecar of a
// TorchScript pair (see the README). Float32, for inference only.
absl::StatusOr<std::unique_ptr<Vae>> OpenVae(const std::string& path, at::Device device = at::kCPU);

// A TorchScript encoder alone, without a sidecar: images in [-1, 1] become the mean, and neither
// factor nor shift is known (1 and 0). Channels and reduction are found with a grey image of 64
// pixels; INVALID_ARGUMENT where it takes neither three channels nor one, or gives no smaller
// image.
absl::StatusOr<std::unique_ptr<Vae>> OpenEncoder(const std::string& path,
                                                 at::Device device = at::kCPU);

}  // namespace mergeplan::vae
