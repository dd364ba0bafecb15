#include "adapters/vae_latent/pictures.h"

#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/status_macros.h"

namespace mergeplan::vae {

absl::StatusOr<PictureSize> ParsePictureSize(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, 'x');
  PictureSize size;
  const auto read = [](const std::string& word, std::int64_t* out) {
    return absl::SimpleAtoi(word, out) && *out >= 1 && *out <= 65536;
  };
  if (parts.size() > 2 || !read(parts[0], &size.height) || !read(parts.back(), &size.width)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--size ", text, ": expected HEIGHTxWIDTH or one number for both, each 1 to 65536"));
  }
  return size;
}

absl::StatusOr<Pictures> Pictures::Plan(const SampleSource& source, const std::string& input,
                                        const VaeDescription& vae, const PictureSize& size,
                                        const std::string& scale) {
  Pictures out;
  out.from_ = source.shape();
  if (out.from_.size() == 2) out.from_.insert(out.from_.begin(), 1);
  if (out.from_.size() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat(input, ": samples have the shape [", absl::StrJoin(source.shape(), ", "),
                     "], expected pictures: [H, W] or [channels, H, W]"));
  }
  out.pixels_ = source.is_pixels();
  out.shape_ = out.from_;
  if (out.from_[0] == 1 && vae.image_channels > 1) {
    out.repeat_ = vae.image_channels;
    out.shape_[0] = vae.image_channels;
  }
  if (out.shape_[0] != vae.image_channels) {
    return absl::InvalidArgumentError(
        absl::StrCat(input, ": pictures have ", out.from_[0], " channels, ", vae.path, " takes ",
                     vae.image_channels, "; expected the same, or grey pictures"));
  }
  if (size.height > 0) {
    out.shape_[1] = size.height;
    out.shape_[2] = size.width;
  }
  if (out.shape_[1] % vae.reduction != 0 || out.shape_[2] % vae.reduction != 0) {
    const auto up = [&](std::int64_t n) {
      return (n + vae.reduction - 1) / vae.reduction * vae.reduction;
    };
    return absl::InvalidArgumentError(
        absl::StrCat(input, ": pictures of ", out.shape_[1], " x ", out.shape_[2], ", ", vae.path,
                     " takes multiples of ", vae.reduction, "; --size ", up(out.shape_[1]), "x",
                     up(out.shape_[2]), " makes them so"));
  }
  // Values that are no pixels are taken to be what the network expects.
  const std::string text = !scale.empty() ? scale : out.pixels_ ? vae.pixels : "none";
  const absl::StatusOr<Scaling> scaling = ParseScaling(text);
  if (!scaling.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--scale: ", std::string(scaling.status().message())));
  }
  out.scaling_ = *scaling;
  return out;
}

at::Tensor Pictures::Make(absl::Span<const double> rows, std::int64_t count) const {
  at::Tensor x = at::empty({count, from_[0], from_[1], from_[2]}, at::kFloat);
  float* to = x.mutable_data_ptr<float>();
  for (std::size_t i = 0; i < rows.size(); ++i) to[i] = static_cast<float>(rows[i]);
  if (shape_[1] != from_[1] || shape_[2] != from_[2]) {
    x = at::_upsample_bicubic2d_aa(x, {shape_[1], shape_[2]}, /*align_corners=*/false);
    if (pixels_) x.clamp_(0, 255);
  }
  x.mul_(scaling_.multiply).add_(scaling_.add);
  return repeat_ > 1 ? x.expand({count, shape_[0], shape_[1], shape_[2]}).contiguous() : x;
}

}  // namespace mergeplan::vae
