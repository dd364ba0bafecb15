#include "adapters/vae_latent/autoencoder.h"

#include <ATen/ops/tensor.h>

#include "absl/strings/str_cat.h"
#include "adapters/layers/caught.h"
#include "adapters/layers/model_folder.h"
#include "adapters/unet/config.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan::vae {

using layers::Caught;
using layers::Scope;
using layers::ShapeOf;

Autoencoder::Autoencoder(const Config& c) : config_(c) {
  const Scope root(registry_);
  if (c.tiny) {
    encoder_ = std::make_unique<TinyCoder>(root / "encoder", c, true);
    decoder_ = std::make_unique<TinyCoder>(root / "decoder", c, false);
    return;
  }
  encoder_ = std::make_unique<KlCoder>(root / "encoder", c, true);
  decoder_ = std::make_unique<KlCoder>(root / "decoder", c, false);
  const std::int64_t latents = c.latent_channels;
  if (c.quant_conv) quant_ = layers::Conv(root / "quant_conv", 2 * latents, 2 * latents, 1);
  if (c.post_quant_conv) post_quant_ = layers::Conv(root / "post_quant_conv", latents, latents, 1);
}

absl::StatusOr<std::unique_ptr<Autoencoder>> Autoencoder::Build(const Config& config,
                                                                const std::string& path) {
  std::unique_ptr<Autoencoder> net;
  MP_RETURN_IF_ERROR(Caught(path, [&] { net.reset(new Autoencoder(config)); }));
  if (!net->registry_.fault().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", net->registry_.fault(), " (block_out_channels, norm_num_groups)"));
  }
  return net;
}

absl::StatusOr<std::unique_ptr<Autoencoder>> Autoencoder::Create(const Config& config,
                                                                 std::uint64_t seed,
                                                                 const std::string& path) {
  MP_ASSIGN_OR_RETURN(auto net, Build(config, path));
  MP_RETURN_IF_ERROR(Caught(path, [&] { net->registry_.Initialize(seed); }));
  return net;
}

absl::StatusOr<std::unique_ptr<Autoencoder>> Autoencoder::Load(const std::string& folder,
                                                               const LoadOptions& options) {
  MP_ASSIGN_OR_RETURN(const std::string found, layers::FindModelFolder(folder, "vae"));
  const std::string path = found + "/config.json";
  MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  MP_ASSIGN_OR_RETURN(const Config config, ParseConfigText(text, path));
  MP_ASSIGN_OR_RETURN(auto net, Build(config, path));
  MP_ASSIGN_OR_RETURN(const auto files, layers::OpenWeights(found));
  MP_RETURN_IF_ERROR(layers::LoadWeights(net->registry_, files, options.dtype, options.device));
  return net;
}

absl::StatusOr<std::unique_ptr<Autoencoder>> Autoencoder::Clone() const {
  MP_ASSIGN_OR_RETURN(auto copy, Build(config_, "clone"));
  MP_RETURN_IF_ERROR(Caught("clone", [&] { copy->registry_.CopyFrom(registry_); }));
  return copy;
}

absl::Status Autoencoder::CheckInput(const at::Tensor& x, const char* what, std::int64_t channels,
                                     std::int64_t least) const {
  if (!x.defined() || x.dim() != 4 || x.size(0) < 1 || x.size(1) != channels || x.size(2) < least ||
      x.size(3) < least) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, x.defined() ? absl::StrCat(" has shape ", ShapeOf(x)) : " is missing",
                     ", expected [B, ", channels, ", H, W] with H and W from ", least, " on"));
  }
  return layers::CheckKind(x, registry_.leaves().front().tensor, what);
}

absl::StatusOr<Encoded> Autoencoder::Encode(const at::Tensor& image) const {
  MP_RETURN_IF_ERROR(CheckInput(image, "image", config_.in_channels, config_.reduction()));
  Encoded out;
  MP_RETURN_IF_ERROR(Caught(config_.class_name(), [&] {
    at::Tensor x = encoder_->Forward(image);
    if (config_.tiny) {
      out.mean = x;
      return;
    }
    if (quant_) x = quant_(x);
    out.mean = x.narrow(1, 0, config_.latent_channels);
    out.log_variance = x.narrow(1, config_.latent_channels, config_.latent_channels).clamp(-30, 20);
  }));
  return out;
}

absl::StatusOr<at::Tensor> Autoencoder::Decode(const at::Tensor& latent) const {
  MP_RETURN_IF_ERROR(CheckInput(latent, "latent", config_.latent_channels, 1));
  at::Tensor out;
  MP_RETURN_IF_ERROR(Caught(config_.class_name(), [&] {
    out = decoder_->Forward(post_quant_ ? post_quant_(latent) : latent);
  }));
  return out;
}

at::Tensor Autoencoder::Constant(const std::vector<double>& values, double otherwise,
                                 const at::Tensor& like) const {
  const at::TensorOptions options = like.options().requires_grad(false);
  if (values.empty()) return at::tensor(otherwise, options);
  return at::tensor(values, options).view({1, -1, 1, 1});
}

at::Tensor Autoencoder::Scale(const at::Tensor& z) const {
  return z.sub(Constant(config_.latents_mean, config_.shift_factor, z))
      .mul(config_.scaling_factor)
      .div(Constant(config_.latents_std, 1, z));
}

at::Tensor Autoencoder::Unscale(const at::Tensor& z) const {
  return z.mul(Constant(config_.latents_std, 1, z))
      .div(config_.scaling_factor)
      .add(Constant(config_.latents_mean, config_.shift_factor, z));
}

std::vector<Autoencoder::Named> Autoencoder::Parameters() const {
  std::vector<Named> named;
  for (const layers::Leaf& leaf : registry_.leaves()) named.emplace_back(leaf.name, leaf.tensor);
  return named;
}

absl::Status Autoencoder::To(at::Device device, at::ScalarType dtype) {
  if (layers::SafetensorsDtype(dtype).empty()) {
    return absl::InvalidArgumentError(absl::StrCat("a network cannot be ", at::toString(dtype),
                                                   ", expected Float, Half, BFloat16 or Double"));
  }
  return Caught("moving the network", [&] { registry_.Move(device, dtype); });
}

absl::Status Autoencoder::Save(const std::string& path, const layers::SaveOptions& options) const {
  absl::Status written;
  MP_RETURN_IF_ERROR(Caught(path, [&] {
    written = layers::WriteModelFolder(path, [&](const std::string& folder) -> absl::Status {
      MP_RETURN_IF_ERROR(
          WriteFileAtomically(folder + "/config.json", unet::ConfigText(config_.source)));
      return layers::WriteWeights(registry_, folder, options);
    });
  }));
  return written;
}

}  // namespace mergeplan::vae
