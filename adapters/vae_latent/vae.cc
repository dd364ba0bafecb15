#include "adapters/vae_latent/vae.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "adapters/layers/model_folder.h"
#include "adapters/vae_latent/script_vae.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan::vae {
namespace {

class FolderVae : public Vae {
 public:
  FolderVae(std::unique_ptr<Autoencoder> net, VaeDescription description)
      : net_(std::move(net)), description_(std::move(description)) {}

  const VaeDescription& description() const override { return description_; }
  absl::StatusOr<Encoded> Encode(const at::Tensor& image) override { return net_->Encode(image); }
  absl::StatusOr<at::Tensor> Decode(const at::Tensor& latent) override {
    return net_->Decode(latent);
  }
  at::Tensor Scale(const at::Tensor& latent) const override { return net_->Scale(latent); }
  at::Tensor Unscale(const at::Tensor& scaled) const override { return net_->Unscale(scaled); }

 private:
  std::unique_ptr<Autoencoder> net_;
  VaeDescription description_;
};

absl::StatusOr<std::string> HashOfFolder(const std::string& folder) {
  MP_ASSIGN_OR_RETURN(std::string hashes, Sha256OfFile(folder + "/config.json"));
  MP_ASSIGN_OR_RETURN(const auto files, layers::OpenWeights(folder));
  for (const auto& file : files) {
    MP_ASSIGN_OR_RETURN(const std::string hash, Sha256OfFile(file->path()));
    hashes += hash;
  }
  return Sha256(hashes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Vae>> OpenVae(const std::string& path, at::Device device) {
  std::error_code ec;
  if (!std::filesystem::is_directory(path, ec)) {
    if (absl::EndsWith(path, ".toml")) return LoadScriptVae(path, device);
    if (std::filesystem::exists(path, ec)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path,
                       ": is neither a folder nor a .toml; expected a diffusers folder "
                       "(AutoencoderKL, AutoencoderTiny), or the sidecar of a TorchScript "
                       "pair that names encoder, decoder, latent_channels and reduction"));
    }
    return absl::NotFoundError(absl::StrCat(path, ": there is no such file or folder"));
  }
  LoadOptions options;
  options.device = device;
  MP_ASSIGN_OR_RETURN(auto net, Autoencoder::Load(path, options));
  MP_ASSIGN_OR_RETURN(const std::string folder, layers::FindModelFolder(path, "vae"));
  const Config& config = net->config();
  VaeDescription about;
  about.kind = config.class_name();
  about.path = path;
  MP_ASSIGN_OR_RETURN(about.sha256, HashOfFolder(folder));
  about.image_channels = config.in_channels;
  about.picture_channels = config.out_channels;
  about.latent_channels = config.latent_channels;
  about.reduction = config.reduction();
  about.has_variance = !config.tiny;
  return std::make_unique<FolderVae>(std::move(net), std::move(about));
}

absl::StatusOr<std::unique_ptr<Vae>> OpenEncoder(const std::string& path, at::Device device) {
  return LoadScriptEncoder(path, device);
}

}  // namespace mergeplan::vae
