#include "adapters/encoding/encoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/encoding/count.h"
#include "adapters/encoding/place.h"
#include "adapters/layers/caught.h"
#include "adapters/noise/noise.h"
#include "adapters/vae_latent/tiling.h"
#include "planner/base/status_macros.h"

namespace mergeplan::encoding {
namespace {

absl::Status CheckContent(const EncodeArguments& arguments, const vae::VaeDescription& vae) {
  const std::string& content = arguments.content;
  if (content != "mean" && content != "mean,log_variance" && content != "sample") {
    return absl::InvalidArgumentError(
        absl::StrCat("--content ", content, ": expected mean, mean,log_variance or sample"));
  }
  if (content != "mean" && !vae.has_variance) {
    return absl::InvalidArgumentError(absl::StrCat("--content ", content, ": ", vae.path, " (",
                                                   vae.kind,
                                                   ") gives a mean only; expected --content mean"));
  }
  if (arguments.dtype != "float32" && arguments.dtype != "float16") {
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype ", arguments.dtype, ": expected float32 or float16"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Encoder> Encoder::Open(const EncodeArguments& arguments) {
  vae::PictureSize size;
  if (arguments.size) {
    MP_ASSIGN_OR_RETURN(size, vae::ParsePictureSize(*arguments.size));
  }
  if (arguments.vae.empty() == arguments.encoder.empty()) {
    return absl::InvalidArgumentError(
        arguments.vae.empty() ? "--vae: is missing, expected --vae or --encoder"
                              : "--vae: stands beside --encoder, expected one of the two");
  }
  MP_ASSIGN_OR_RETURN(const at::Device device, OpenPlace(arguments.device, arguments.threads));
  Encoder out(arguments, device);
  if (arguments.encoder.empty()) {
    MP_ASSIGN_OR_RETURN(out.vae_, vae::OpenVae(arguments.vae, device));
  } else {
    MP_ASSIGN_OR_RETURN(out.vae_, vae::OpenEncoder(arguments.encoder, device));
  }
  MP_RETURN_IF_ERROR(CheckContent(arguments, out.vae_->description()));
  MP_ASSIGN_OR_RETURN(out.source_, OpenSamples(arguments.input, {.array = arguments.array}));
  MP_ASSIGN_OR_RETURN(out.pictures_,
                      vae::Pictures::Plan(*out.source_, arguments.input, out.vae_->description(),
                                          size, arguments.scale.value_or("")));
  return out;
}

absl::StatusOr<std::int64_t> Encoder::Count() const {
  const std::int64_t limit = arguments_.limit.value_or(std::numeric_limits<std::int64_t>::max());
  if (source_->size()) return std::min(*source_->size(), limit);
  MP_ASSIGN_OR_RETURN(const auto once, OpenSamples(arguments_.input, {.array = arguments_.array}));
  return CountSamples(*once, limit);
}

EncodeResult Encoder::Description() const {
  const vae::VaeDescription& about = vae_->description();
  EncodeResult result;
  result.vae_kind = about.kind;
  result.sha256 = about.sha256;
  result.image_shape = pictures_.shape();
  result.grey_repeated = pictures_.grey_repeated();
  result.latent_shape = {about.latent_channels, pictures_.shape()[1] / about.reduction,
                         pictures_.shape()[2] / about.reduction};
  return result;
}

absl::StatusOr<Latents> Encoder::Encode(absl::Span<const double> rows, std::int64_t count,
                                        std::int64_t first) {
  const c10::InferenceMode inference;
  Latents latents;
  absl::Status encoded;
  MP_RETURN_IF_ERROR(layers::Caught(arguments_.input, [&] {
    const at::Tensor pictures = pictures_.Make(rows, count);
    encoded = CheckRange(pictures, first);
    if (!encoded.ok()) return;
    absl::StatusOr<vae::Encoded> out =
        vae::EncodeInTiles(*vae_, pictures.to(device_), {.pixels = arguments_.tile});
    encoded = out.status();
    if (!out.ok()) return;
    at::Tensor mean = out->mean;
    at::Tensor log_variance = out->log_variance;
    if (arguments_.content == "sample")
      mean = mean + Noise(mean, first) * (log_variance * 0.5).exp();
    const bool both = arguments_.content == "mean,log_variance";
    if (!arguments_.raw) {
      if (both) {
        // Scaling is affine: the deviation is multiplied by its slope alone.
        const at::Tensor slope =
            vae_->Scale(at::ones_like(mean)) - vae_->Scale(at::zeros_like(mean));
        log_variance = log_variance + 2 * slope.log();
      }
      mean = vae_->Scale(mean);
    }
    latents.mean = mean.to(at::kCPU, at::kFloat).contiguous();
    if (both) latents.log_variance = log_variance.to(at::kCPU, at::kFloat).contiguous();
  }));
  MP_RETURN_IF_ERROR(encoded);
  MP_RETURN_IF_ERROR(CheckFinite(latents.mean, first));
  if (latents.log_variance.defined()) MP_RETURN_IF_ERROR(CheckFinite(latents.log_variance, first));
  return latents;
}

// Numbers that are no pixels are taken to be in the network's range already, unless --scale says
// what they are. Resizing overshoots at edges, by less than kMostBeyond of the range.
absl::Status Encoder::CheckRange(const at::Tensor& pictures, std::int64_t first) const {
  constexpr double kMostBeyond = 0.25;
  if (arguments_.scale.has_value()) return absl::OkStatus();
  const vae::VaeDescription& about = vae_->description();
  MP_ASSIGN_OR_RETURN(const Scaling range, ParseScaling(about.pixels));
  const double low = range.Apply(0), high = range.Apply(255), beyond = kMostBeyond * (high - low);
  const double least = pictures.min().item<double>(), most = pictures.max().item<double>();
  // Not: outside, so that NaN is left to what looks for it.
  if (!(least < low - beyond || most > high + beyond)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(arguments_.input, ": samples ", first, " to ", first + pictures.size(0) - 1,
                   " hold values from ", least, " to ", most, ", expected ", low, " to ", high,
                   " as ", about.path, " takes them; --scale ", about.pixels,
                   " brings values from 0 to 255 there, --scale none takes them as they are"));
}

// Fixed by seed and number of the sample alone.
at::Tensor Encoder::Noise(const at::Tensor& like, std::int64_t first) const {
  const std::int64_t each = like.numel() / like.size(0);
  at::Tensor noise = at::empty(like.sizes(), at::kFloat);
  NoiseStream(static_cast<std::uint64_t>(arguments_.seed), 0, 0, 0)
      .FillAt(static_cast<std::uint64_t>(first * each), noise.mutable_data_ptr<float>(),
              noise.numel());
  return noise.to(like.device());
}

absl::Status Encoder::CheckFinite(const at::Tensor& values, std::int64_t first) const {
  const float* from = values.const_data_ptr<float>();
  const std::int64_t each = values.numel() / values.size(0);
  const float most = arguments_.dtype == "float16" ? 65504.0F : std::numeric_limits<float>::max();
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    if (std::abs(from[i]) <= most) continue;
    return absl::DataLossError(
        absl::StrCat(arguments_.input, ": sample ", first + i / each, " becomes a latent with ",
                     from[i], ", expected numbers that ", arguments_.dtype,
                     " holds; check the picture, --scale and the network",
                     arguments_.dtype == "float16" ? ", or store --dtype float32" : ""));
  }
  return absl::OkStatus();
}

}  // namespace mergeplan::encoding
