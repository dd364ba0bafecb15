#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/layers/registry.h"
#include "adapters/layers/weights.h"
#include "adapters/vae_latent/coders.h"
#include "adapters/vae_latent/config.h"

namespace mergeplan::vae {

struct LoadOptions {
  at::ScalarType dtype = at::kFloat;  // whatever the file holds
  at::Device device = at::kCPU;
};

struct Encoded {
  at::Tensor mean;          // [B, latent_channels, h, w], not scaled
  at::Tensor log_variance;  // the same shape, in [-30, 20]; undefined for AutoencoderTiny
};

// diffusers' AutoencoderKL or AutoencoderTiny. Images are [B, C, H, W] in [-1, 1].
class Autoencoder {
 public:
  using Named = std::pair<std::string, at::Tensor>;

  // With random weights, as PyTorch's layers begin.
  static absl::StatusOr<std::unique_ptr<Autoencoder>> Create(const Config& config,
                                                             std::uint64_t seed,
                                                             const std::string& path = "config");
  // From a folder with config.json and weights, or a pipeline's with those in vae/.
  static absl::StatusOr<std::unique_ptr<Autoencoder>> Load(const std::string& folder,
                                                           const LoadOptions& options = {});

  // The same with numbers of its own.
  absl::StatusOr<std::unique_ptr<Autoencoder>> Clone() const;

  // h = H / reduction() where that divides. Differentiable. INVALID_ARGUMENT for another shape,
  // type or device, or a picture smaller than one latent.
  absl::StatusOr<Encoded> Encode(const at::Tensor& image) const;
  absl::StatusOr<at::Tensor> Decode(const at::Tensor& latent) const;
  // What a denoiser is given of a latent, and back.
  at::Tensor Scale(const at::Tensor& latent) const;
  at::Tensor Unscale(const at::Tensor& scaled) const;

  std::vector<Named> Parameters() const;
  absl::Status To(at::Device device, at::ScalarType dtype);
  absl::Status Save(const std::string& path, const layers::SaveOptions& options = {}) const;
  const Config& config() const { return config_; }
  const layers::Registry& registry() const { return registry_; }

 private:
  explicit Autoencoder(const Config& config);
  static absl::StatusOr<std::unique_ptr<Autoencoder>> Build(const Config& config,
                                                            const std::string& path);
  absl::Status CheckInput(const at::Tensor& x, const char* what, std::int64_t channels,
                          std::int64_t least) const;
  // Per channel, or one number.
  at::Tensor Constant(const std::vector<double>& values, double otherwise,
                      const at::Tensor& like) const;

  Config config_;
  layers::Registry registry_;
  std::unique_ptr<Coder> encoder_, decoder_;
  layers::Conv quant_, post_quant_;
};

}  // namespace mergeplan::vae
