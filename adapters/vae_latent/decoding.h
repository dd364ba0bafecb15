#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/vae_latent/vae.h"

namespace mergeplan::vae {

struct DecodingOptions {
  bool raw = false;       // latents are as the encoder gives them, not in the denoiser's units
  std::int64_t tile = 0;  // pixels; larger pictures are decoded in tiles
  at::Device device = at::kCPU;
  // What a flat latent is; none: it is taken to be square.
  std::optional<std::vector<std::int64_t>> shape;
};

// How latents, wherever they come from, become pictures again.
class Decoding {
 public:
  // `shape` is that of one latent as it comes: [C, h, w], or flat with as many numbers.
  // INVALID_ARGUMENT where it is no latent of this network, with the shape that was found and the
  // one that was expected. `what` begins the errors.
  static absl::StatusOr<Decoding> Plan(std::shared_ptr<Vae> vae,
                                       const std::vector<std::int64_t>& shape,
                                       const std::string& what, const DecodingOptions& options);

  const std::vector<std::int64_t>& latent_shape() const { return latent_; }    // [C, h, w]
  const std::vector<std::int64_t>& picture_shape() const { return picture_; }  // [C, H, W]
  // How the pictures' numbers come from pixels 0..255 (ParseScaling).
  const std::string& pixels() const { return vae_->description().pixels; }
  const VaeDescription& vae() const { return vae_->description(); }

  // [B, latent] in whatever shape, type and place to pictures [B, C, H, W], float32 on the CPU, as
  // the network gives them: not cut to the range of `pixels`. Errors of the network.
  absl::StatusOr<at::Tensor> Decode(const at::Tensor& latents) const;

 private:
  Decoding() = default;
  std::shared_ptr<Vae> vae_;
  std::vector<std::int64_t> latent_, picture_;
  DecodingOptions options_;
};

// "32x16x16": channels, height and width of a latent. INVALID_ARGUMENT.
absl::StatusOr<std::vector<std::int64_t>> ParseLatentShape(const std::string& text);

}  // namespace mergeplan::vae
