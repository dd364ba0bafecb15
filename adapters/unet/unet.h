#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/layers/registry.h"
#include "adapters/layers/weights.h"
#include "adapters/network/module.h"
#include "adapters/unet/blocks.h"
#include "adapters/unet/config.h"
#include "adapters/unet/embeddings.h"

namespace mergeplan::unet {

struct LoadOptions {
  at::ScalarType dtype = at::kFloat;  // whatever the file holds
  at::Device device = at::kCPU;
};

// diffusers' UNet2DModel. z: [B, in_channels, H, W] with H and W multiples of
// config().size_multiple(); label as config().class_embedding says: [B] int64, or what goes through
// the timestep's projection, or [B, time_embedding_dim]. A forward pass of one network at a time.
class UNet2d : public network::Module {
 public:
  // With random weights, as PyTorch's layers begin, from the seed; float32 on the CPU.
  // INVALID_ARGUMENT names the layer whose groups do not divide its channels, after `path`.
  static absl::StatusOr<std::unique_ptr<UNet2d>> Create(const Config& config, std::uint64_t seed,
                                                        const std::string& path = "config");
  // From a folder with config.json and weights (adapters/layers/model_folder.h says which), or a
  // pipeline's folder with those in unet/. In evaluation, with parameters that ask for gradients.
  static absl::StatusOr<std::unique_ptr<UNet2d>> Load(const std::string& folder,
                                                      const LoadOptions& options = {});

  absl::StatusOr<at::Tensor> Forward(const at::Tensor& z, const at::Tensor& time,
                                     const at::Tensor& label) override;
  std::vector<Named> Parameters() const override;
  std::vector<Named> Buffers() const override;
  absl::StatusOr<std::unique_ptr<network::Module>> Clone() const override;
  void SetTraining(bool on) override { training_ = on; }
  absl::Status To(at::Device device, at::ScalarType dtype) override;
  absl::Status Save(const std::string& path) const override { return SaveAs(path, {}); }

  // The same with another dtype, or in several files.
  absl::Status SaveAs(const std::string& path, const layers::SaveOptions& options) const;
  // The backward pass computes the blocks' insides again instead of keeping them: the same
  // gradients for the memory of the blocks' inputs and the time of another forward pass.
  absl::Status SetGradientCheckpointing(bool on) override {
    checkpointing_ = on;
    return absl::OkStatus();
  }

  const Config& config() const { return config_; }
  const layers::Registry& registry() const { return registry_; }
  // From the input to the output.
  std::vector<BlockFacts> Blocks() const;

 private:
  explicit UNet2d(const Config& config);
  static absl::StatusOr<std::unique_ptr<UNet2d>> Build(const Config& config,
                                                       const std::string& path);
  absl::Status CheckInput(const at::Tensor& z) const;
  at::Tensor Run(const at::Tensor& z, const at::Tensor& time, const at::Tensor& label) const;

  Config config_;
  layers::Registry registry_;
  bool training_ = false, checkpointing_ = false;
  layers::Conv conv_in_, conv_out_;
  Conditioning conditioning_;
  std::vector<DownBlock> down_;
  std::vector<UpBlock> up_;
  std::vector<MidBlock> mid_;  // one or none
  layers::GroupNorm norm_out_;
};

}  // namespace mergeplan::unet
