#include "adapters/vae_latent/script_vae.h"

#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/layers/caught.h"
#include "adapters/vae_latent/sidecar.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan::vae {
namespace {

using layers::Caught;
using layers::ShapeOf;

class ScriptVae : public Vae {
 public:
  ScriptVae(Sidecar sidecar, VaeDescription description)
      : sidecar_(std::move(sidecar)), description_(std::move(description)) {}

  absl::Status Load(at::Device device) {
    MP_RETURN_IF_ERROR(LoadOne(sidecar_.encoder, device, &encoder_));
    return LoadOne(sidecar_.decoder, device, &decoder_);
  }

  // What the encoder alone shows: channels of images and latents, and the reduction.
  absl::Status Probe(at::Device device) {
    constexpr std::int64_t kSide = 64;
    std::string last;
    for (const std::int64_t channels : {3, 1}) {
      at::Tensor out;
      const absl::Status run = Caught(sidecar_.encoder, [&] {
        const c10::InferenceMode inference;
        const torch::jit::GraphOptimizerEnabledGuard plain(false);
        const c10::IValue value =
            encoder_->forward({at::zeros({1, channels, kSide, kSide}, device)});
        if (value.isTensor()) out = value.toTensor();
      });
      if (!run.ok()) {
        last = std::string(run.message().substr(0, 200));
        continue;
      }
      if (!out.defined() || out.dim() != 4 || out.size(0) != 1 || out.size(1) < 1 ||
          out.size(2) < 1 || out.size(2) != out.size(3) || kSide % out.size(2) != 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            sidecar_.encoder, ": gave ", out.defined() ? ShapeOf(out) : "no tensor",
            " for an image [1, ", channels, ", 64, 64], expected [1, C, 64 / r, 64 / r]: latents"));
      }
      sidecar_.image_channels = channels;
      sidecar_.latent_channels = out.size(1);
      sidecar_.reduction = kSide / out.size(2);
      description_.image_channels = description_.picture_channels = channels;
      description_.latent_channels = sidecar_.latent_channels;
      description_.reduction = sidecar_.reduction;
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(sidecar_.encoder,
                     ": takes no image of three channels or one and 64 x 64 pixels, expected an "
                     "encoder; a vae.toml with --vae tells other ones (it said: ",
                     last, ")"));
  }

  const VaeDescription& description() const override { return description_; }

  absl::StatusOr<Encoded> Encode(const at::Tensor& image) override {
    const std::int64_t by = sidecar_.reduction;
    MP_RETURN_IF_ERROR(Check(image, "image", sidecar_.image_channels, by));
    const std::int64_t channels = sidecar_.latent_channels * (description_.has_variance ? 2 : 1);
    MP_ASSIGN_OR_RETURN(const at::Tensor z,
                        Run(encoder_, "encoder", sidecar_.encoder, image,
                            {image.size(0), channels, image.size(2) / by, image.size(3) / by}));
    Encoded out;
    out.mean = z.narrow(1, 0, sidecar_.latent_channels);
    if (description_.has_variance) {
      out.log_variance =
          z.narrow(1, sidecar_.latent_channels, sidecar_.latent_channels).clamp(-30, 20);
    }
    return out;
  }

  absl::StatusOr<at::Tensor> Decode(const at::Tensor& latent) override {
    const std::int64_t by = sidecar_.reduction;
    MP_RETURN_IF_ERROR(Check(latent, "latent", sidecar_.latent_channels, 1));
    return Run(decoder_, "decoder", sidecar_.decoder, latent,
               {latent.size(0), sidecar_.image_channels, latent.size(2) * by, latent.size(3) * by});
  }

  at::Tensor Scale(const at::Tensor& latent) const override {
    return latent.sub(sidecar_.shift_factor).mul(sidecar_.scaling_factor);
  }
  at::Tensor Unscale(const at::Tensor& scaled) const override {
    return scaled.div(sidecar_.scaling_factor).add(sidecar_.shift_factor);
  }

 private:
  static absl::Status LoadOne(const std::string& file, at::Device device,
                              std::optional<torch::jit::Module>* out) {
    if (file.empty()) return absl::OkStatus();
    const absl::Status loaded = Caught(file, [&] {
      torch::jit::Module module = torch::jit::load(file, device);
      module.eval();
      module.to(device, at::kFloat);
      *out = std::move(module);
    });
    if (loaded.ok()) return loaded;
    return absl::InvalidArgumentError(
        absl::StrCat(file,
                     ": is no TorchScript that this LibTorch reads, expected what "
                     "torch.jit.save writes"));
  }

  absl::Status Check(const at::Tensor& x, const char* what, std::int64_t channels,
                     std::int64_t multiple) const {
    if (x.defined() && x.dim() == 4 && x.size(0) > 0 && x.size(1) == channels && x.size(2) > 0 &&
        x.size(3) > 0 && x.size(2) % multiple == 0 && x.size(3) % multiple == 0) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(what, x.defined() ? absl::StrCat(" has shape ", ShapeOf(x)) : " is missing",
                     ", expected [B, ", channels, ", H, W] with H and W multiples of ", multiple));
  }

  absl::StatusOr<at::Tensor> Run(std::optional<torch::jit::Module>& module, const char* which,
                                 const std::string& file, const at::Tensor& x,
                                 const std::vector<std::int64_t>& expected) const {
    if (!module) {
      return absl::FailedPreconditionError(
          absl::StrCat(description_.path, ": key '", which, "' is missing, and it is needed here"));
    }
    at::Tensor out;
    bool tensor = true;
    MP_RETURN_IF_ERROR(Caught(file, [&] {
      const torch::jit::GraphOptimizerEnabledGuard plain(false);
      const c10::IValue value = module->forward({x});
      tensor = value.isTensor();
      if (tensor) out = value.toTensor();
    }));
    if (!tensor || !out.sizes().equals(expected)) {
      return absl::InvalidArgumentError(absl::StrCat(
          file, ": gave ", tensor ? absl::StrCat("the shape ", ShapeOf(out)) : "no tensor", " for ",
          ShapeOf(x), ", expected [", expected[0], ", ", expected[1], ", ", expected[2], ", ",
          expected[3], "]; see image_channels, latent_channels, reduction and output in ",
          description_.path));
    }
    return out;
  }

  Sidecar sidecar_;
  VaeDescription description_;
  std::optional<torch::jit::Module> encoder_, decoder_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Vae>> LoadScriptVae(const std::string& path, at::Device device) {
  MP_ASSIGN_OR_RETURN(const Sidecar sidecar, ReadVaeSidecar(path));
  VaeDescription about;
  about.kind = "TorchScript";
  about.path = path;
  about.pixels = sidecar.pixels;
  about.image_channels = about.picture_channels = sidecar.image_channels;
  about.latent_channels = sidecar.latent_channels;
  about.reduction = sidecar.reduction;
  about.has_variance = sidecar.output == "mean,log_variance";
  std::string hashes;
  for (const std::string& file : {path, sidecar.encoder, sidecar.decoder}) {
    if (file.empty()) continue;
    MP_ASSIGN_OR_RETURN(const std::string hash, Sha256OfFile(file));
    hashes += hash;
  }
  about.sha256 = Sha256(hashes);
  auto vae = std::make_unique<ScriptVae>(sidecar, about);
  MP_RETURN_IF_ERROR(vae->Load(device));
  return vae;
}

absl::StatusOr<std::unique_ptr<Vae>> LoadScriptEncoder(const std::string& path, at::Device device) {
  VaeDescription about;
  about.kind = "TorchScript";
  about.path = path;
  MP_ASSIGN_OR_RETURN(about.sha256, Sha256OfFile(path));
  Sidecar sidecar;
  sidecar.encoder = path;
  about.pixels = sidecar.pixels;
  auto vae = std::make_unique<ScriptVae>(sidecar, about);
  MP_RETURN_IF_ERROR(vae->Load(device));
  MP_RETURN_IF_ERROR(vae->Probe(device));
  return vae;
}

}  // namespace mergeplan::vae
