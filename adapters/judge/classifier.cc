#include "adapters/judge/classifier.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/network/try.h"
#include "adapters/noise/noise.h"
#include "planner/base/status_macros.h"

namespace mergeplan::judge {
namespace {

absl::Status Check(const ClassifierConfig& config) {
  const auto& s = config.shape;
  bool good = s.size() == 3 && s[0] >= 1 && s[0] <= 16 && s[1] >= 4 && s[2] >= 4 && s[1] <= 1024 &&
              s[2] <= 1024 && config.classes >= 2 && config.classes <= 100000 &&
              config.deviation > 0 && std::isfinite(config.deviation) && std::isfinite(config.mean);
  for (const int channels : config.channels) good = good && channels >= 1 && channels <= 4096;
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "classifier: shape [", absl::StrJoin(s, ", "), "], ", config.classes, " classes, channels [",
      absl::StrJoin(config.channels, ", "), "], mean ", config.mean, ", deviation ",
      config.deviation,
      "; expected [C, H, W] with sides of 4 to 1024, two classes or more, channels of 1 to 4096 "
      "and a positive deviation"));
}

}  // namespace

absl::StatusOr<Classifier> Classifier::Create(ClassifierConfig config, std::uint64_t seed) {
  MP_RETURN_IF_ERROR(Check(config));
  Classifier out;
  out.config_ = std::move(config);
  std::int64_t in = out.config_.shape[0];
  int number = 0;
  const auto add = [&](const std::string& name, const std::vector<std::int64_t>& shape,
                       double deviation) {
    at::Tensor tensor = at::zeros(shape, at::kFloat);
    ++number;
    if (deviation > 0) {
      NoiseStream(seed, number, number, 0).Fill(tensor.mutable_data_ptr<float>(), tensor.numel());
      tensor.mul_(deviation);
    }
    tensor.set_requires_grad(true);
    out.parameters_.emplace_back(name, tensor);
  };
  return network::Try("classifier", [&]() -> absl::StatusOr<Classifier> {
    for (int k = 0; k < 4; ++k) {
      const std::int64_t width = out.config_.channels[k];
      add(absl::StrCat("conv", k + 1, ".weight"), {width, in, 3, 3},
          std::sqrt(2.0 / (9.0 * static_cast<double>(in))));
      add(absl::StrCat("conv", k + 1, ".bias"), {width}, 0);
      in = width;
    }
    add("linear.weight", {out.config_.classes, in}, std::sqrt(1.0 / static_cast<double>(in)));
    add("linear.bias", {out.config_.classes}, 0);
    return std::move(out);
  });
}

std::int64_t Classifier::size() const {
  std::int64_t all = 0;
  for (const auto& [name, tensor] : parameters_) all += tensor.numel();
  return all;
}

absl::StatusOr<at::Tensor> Classifier::Features(const at::Tensor& pixels) const {
  const auto& shape = config_.shape;
  if (pixels.dim() != 4 || !pixels.sizes().slice(1).equals(at::IntArrayRef(shape))) {
    return absl::InvalidArgumentError(absl::StrCat(
        config_.name, ": got pictures of the shape [", absl::StrJoin(pixels.sizes(), ", "),
        "], expected [B, ", absl::StrJoin(shape, ", "), "]"));
  }
  return network::Try("classifier", [&]() -> absl::StatusOr<at::Tensor> {
    at::Tensor x = (pixels / 255 - config_.mean) / config_.deviation;
    for (int k = 0; k < 4; ++k) {
      x = at::relu(at::conv2d(x, parameters_[2 * k].second, parameters_[2 * k + 1].second, 1, 1));
      if (k < 2) x = at::max_pool2d(x, 2);
    }
    return x.mean({2, 3});
  });
}

at::Tensor Classifier::Logits(const at::Tensor& features) const {
  return at::linear(features, parameters_[8].second, parameters_[9].second);
}

}  // namespace mergeplan::judge
