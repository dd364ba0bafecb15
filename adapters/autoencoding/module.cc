#include "adapters/autoencoding/module.h"

#include <utility>

#include "planner/base/status_macros.h"

namespace mergeplan::autoencoding {

absl::StatusOr<at::Tensor> AutoencoderModule::Forward(const at::Tensor& z,
                                                      const at::Tensor& /*time*/,
                                                      const at::Tensor& /*label*/) {
  MP_ASSIGN_OR_RETURN(const vae::Encoded encoded, net_->Encode(z));
  return net_->Decode(encoded.mean);
}

absl::StatusOr<std::unique_ptr<network::Module>> AutoencoderModule::Clone() const {
  MP_ASSIGN_OR_RETURN(auto copy, net_->Clone());
  return std::make_unique<AutoencoderModule>(std::move(copy));
}

}  // namespace mergeplan::autoencoding
