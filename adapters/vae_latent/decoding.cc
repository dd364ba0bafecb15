#include "adapters/vae_latent/decoding.h"

#include <c10/core/InferenceMode.h>

#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "adapters/layers/caught.h"
#include "adapters/vae_latent/tiling.h"
#include "planner/base/status_macros.h"

namespace mergeplan::vae {
namespace {

std::string Text(const std::vector<std::int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// [C, h, w] of a flat latent: given, or square; empty where neither fits.
std::vector<std::int64_t> Unfold(const std::vector<std::int64_t>& shape, std::int64_t channels,
                                 const std::optional<std::vector<std::int64_t>>& given) {
  std::int64_t numbers = 1;
  for (const std::int64_t extent : shape) numbers *= extent;
  if (given) {
    if (shape.size() > 1) return shape == *given ? shape : std::vector<std::int64_t>();
    std::int64_t expected = 1;
    for (const std::int64_t extent : *given) expected *= extent;
    return expected == numbers ? *given : std::vector<std::int64_t>();
  }
  if (shape.size() == 3) return shape;
  if (shape.size() != 1 || numbers % channels != 0) return {};
  const auto side =
      static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(numbers / channels))));
  if (side * side * channels != numbers) return {};
  return {channels, side, side};
}

}  // namespace

absl::StatusOr<std::vector<std::int64_t>> ParseLatentShape(const std::string& text) {
  std::vector<std::int64_t> shape;
  for (const auto part : absl::StrSplit(text, 'x')) {
    std::int64_t extent = 0;
    if (!absl::SimpleAtoi(part, &extent) || extent < 1 || extent > 1 << 20) break;
    shape.push_back(extent);
  }
  if (shape.size() == 3 && absl::StrJoin(shape, "x") == text) return shape;
  return absl::InvalidArgumentError(absl::StrCat(
      "--shape ", text, ": expected CHANNELSxHEIGHTxWIDTH of a latent, such as 4x32x32"));
}

absl::StatusOr<Decoding> Decoding::Plan(std::shared_ptr<Vae> vae,
                                        const std::vector<std::int64_t>& shape,
                                        const std::string& what, const DecodingOptions& options) {
  const VaeDescription& about = vae->description();
  Decoding out;
  out.latent_ = Unfold(shape, about.latent_channels, options.shape);
  if (out.latent_.empty() || out.latent_[0] != about.latent_channels) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": latents have the shape ", Text(shape),
        options.shape ? absl::StrCat(" (--shape ", absl::StrJoin(*options.shape, "x"), ")") : "",
        ", expected [", about.latent_channels, ", h, w], as ", about.path, " (", about.kind,
        ") takes them",
        shape.size() == 1 ? ", or as many numbers in a row: --shape CxHxW says which" : ""));
  }
  out.picture_ = {about.picture_channels, out.latent_[1] * about.reduction,
                  out.latent_[2] * about.reduction};
  out.vae_ = std::move(vae);
  out.options_ = options;
  return out;
}

absl::StatusOr<at::Tensor> Decoding::Decode(const at::Tensor& latents) const {
  const c10::InferenceMode inference;
  at::Tensor picture;
  absl::Status status;
  MP_RETURN_IF_ERROR(layers::Caught("decoding", [&] {
    const at::Tensor z = latents.to(options_.device, at::kFloat)
                             .reshape({latents.size(0), latent_[0], latent_[1], latent_[2]});
    absl::StatusOr<at::Tensor> out =
        DecodeInTiles(*vae_, options_.raw ? z : vae_->Unscale(z), {.pixels = options_.tile});
    status = out.status();
    if (out.ok()) picture = out->to(at::kCPU, at::kFloat).contiguous();
  }));
  MP_RETURN_IF_ERROR(status);
  return picture;
}

}  // namespace mergeplan::vae
