#pragma once

#include <memory>
#include <string>
#include <vector>

#include "adapters/network/module.h"
#include "adapters/vae_latent/autoencoder.h"

namespace mergeplan::autoencoding {

// An autoencoder as the trainer wants networks. Forward gives a picture back from the mean of its
// latent; times and labels are not looked at.
class AutoencoderModule : public network::Module {
 public:
  explicit AutoencoderModule(std::unique_ptr<vae::Autoencoder> net) : net_(std::move(net)) {}

  absl::StatusOr<at::Tensor> Forward(const at::Tensor& z, const at::Tensor& time,
                                     const at::Tensor& label) override;
  std::vector<Named> Parameters() const override { return net_->Parameters(); }
  std::vector<Named> Buffers() const override { return {}; }
  absl::StatusOr<std::unique_ptr<network::Module>> Clone() const override;
  void SetTraining(bool) override {}  // nothing is drawn
  absl::Status To(at::Device device, at::ScalarType dtype) override {
    return net_->To(device, dtype);
  }
  absl::Status Save(const std::string& path) const override { return net_->Save(path); }

  const vae::Autoencoder& net() const { return *net_; }

 private:
  std::unique_ptr<vae::Autoencoder> net_;
};

}  // namespace mergeplan::autoencoding
