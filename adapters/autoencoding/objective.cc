#include "adapters/autoencoding/objective.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/autoencoding/module.h"
#include "adapters/denoising/batches.h"
#include "adapters/network/inputs.h"
#include "adapters/network/precision.h"
#include "adapters/network/try.h"
#include "adapters/noise/noise.h"
#include "planner/base/status_macros.h"

namespace mergeplan::autoencoding {
namespace {

using denoising::Objective;

// Resizing and rounding may leave the range a little.
constexpr double kMostBeyond = 1e-3;

class Autoencoding : public Objective {
 public:
  Autoencoding(at::Tensor pictures, const Options& options, network::Precision precision,
               const MsSsimOptions& similarity, at::Device device)
      : pictures_(std::move(pictures)),
        options_(options),
        precision_(precision),
        similarity_(similarity),
        device_(device) {}

  absl::StatusOr<Loss> Of(network::Module& network, std::uint64_t number) const override {
    const auto* autoencoder = dynamic_cast<const AutoencoderModule*>(&network);
    if (autoencoder == nullptr) {
      return absl::InvalidArgumentError("the network is none, expected an autoencoder");
    }
    const vae::Autoencoder& net = autoencoder->net();
    const denoising::Options& training = options_.training;
    const auto seed = static_cast<std::uint64_t>(training.seed);
    const std::uint64_t first = number * static_cast<std::uint64_t>(training.batch);
    const at::Tensor x =
        denoising::TakeSamples(pictures_, seed, first, training.batch, training.flip).to(device_);
    const auto type = x.scalar_type();
    vae::Encoded law;
    {
      const network::Autocast autocast(precision_, device_.type());
      MP_ASSIGN_OR_RETURN(law, net.Encode(x));
    }
    const at::Tensor mean = law.mean.to(type), log_variance = law.log_variance.to(type);
    const at::Tensor z =
        mean + (log_variance * 0.5).exp() *
                   Noise(mean, first * static_cast<std::uint64_t>(mean.numel() / mean.size(0)));
    at::Tensor y;
    {
      const network::Autocast autocast(precision_, device_.type());
      MP_ASSIGN_OR_RETURN(y, net.Decode(z));
    }
    if (!y.sizes().equals(x.sizes())) {
      return absl::InvalidArgumentError(
          "the network gives pictures back in another shape, expected the same; take sides that "
          "are multiples of its reduction");
    }
    y = y.to(type);
    const at::Tensor reconstruction =
        options_.loss == LossKind::kSquared
            ? (x - y).square().mean()
            : 1 - MsSsim((x + 1) * 0.5, (y + 1) * 0.5, similarity_).mean();
    const at::Tensor kl =
        (mean.square() + log_variance.exp() - 1 - log_variance).flatten(1).sum(1).mean() * 0.5;
    return Loss{reconstruction + options_.kl_weight * kl,
                {reconstruction.item<double>(), kl.item<double>()}};
  }

  std::vector<std::string> parts() const override { return {"reconstruction", "kl"}; }

 private:
  at::Tensor Noise(const at::Tensor& like, std::uint64_t position) const {
    network::RowStream stream;
    stream.seed = static_cast<std::uint64_t>(options_.training.seed);
    at::Tensor noise = at::empty(like.sizes(), at::TensorOptions().dtype(at::kFloat));
    NoiseStream(stream.Name(network::Lane::kTraining))
        .FillAt(position, noise.mutable_data_ptr<float>(), noise.numel());
    return noise.to(like.device(), like.scalar_type());
  }

  at::Tensor pictures_;
  Options options_;
  network::Precision precision_;
  MsSsimOptions similarity_;
  at::Device device_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Objective>> AutoencodingObjective(at::Tensor pictures,
                                                                 const Options& options,
                                                                 at::Device device) {
  if (pictures.dim() != 4 || pictures.numel() == 0) {
    return absl::InvalidArgumentError(
        "there are no pictures to train on, expected [N, C, H, W] with one or more");
  }
  MP_RETURN_IF_ERROR(denoising::CheckFinite(pictures));
  MP_ASSIGN_OR_RETURN(const network::Precision precision,
                      network::ParsePrecision(options.training.precision));
  MsSsimOptions similarity;
  if (options.loss == LossKind::kMsSsim) {
    const std::int64_t height = pictures.size(2), width = pictures.size(3);
    if (options.window == 0) {
      MP_ASSIGN_OR_RETURN(similarity, MsSsimOptions::For(height, width));
    } else {
      similarity.window = options.window;
      similarity.scales = options.scales;
      MP_RETURN_IF_ERROR(similarity.Validate(height, width));
    }
  }
  return network::Try("training data", [&]() -> absl::StatusOr<std::unique_ptr<Objective>> {
    const auto least = pictures.min().item<double>(), most = pictures.max().item<double>();
    if (least < -1 - kMostBeyond || most > 1 + kMostBeyond) {
      return absl::InvalidArgumentError(absl::StrCat("the pictures' values are ", least, " to ",
                                                     most,
                                                     ", expected -1 to 1, as an autoencoder takes "
                                                     "them; --scaling -1:1 brings values from 0 to "
                                                     "255 there"));
    }
    return std::make_unique<Autoencoding>(std::move(pictures), options, precision, similarity,
                                          device);
  });
}

}  // namespace mergeplan::autoencoding
