#include "adapters/autoencoding/ms_ssim.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "adapters/autoencoding/options.h"

namespace mergeplan::autoencoding {
namespace {

constexpr double kWeights[] = {0.0448, 0.2856, 0.3001, 0.2363, 0.1333};
constexpr std::int64_t kWide = 11, kNarrow = 7;
constexpr double kC1 = 0.01 * 0.01, kC2 = 0.03 * 0.03;

// Sides after halving, odd ones rounded up (they are padded with zeros).
std::int64_t SideAt(std::int64_t side, int scale) {
  for (int s = 0; s < scale; ++s) side = (side + 1) / 2;
  return side;
}

int ScalesThatFit(std::int64_t side, std::int64_t window) {
  int scales = 0;
  while (scales < kMostScales && SideAt(side, scales) >= window) ++scales;
  return scales;
}

std::vector<double> Window(const MsSsimOptions& options) {
  std::vector<double> out;
  double sum = 0;
  for (std::int64_t k = 0; k < options.window; ++k) {
    const double x = static_cast<double>(k - options.window / 2) / options.sigma;
    sum += out.emplace_back(std::exp(-x * x / 2));
  }
  for (double& value : out) value /= sum;
  return out;
}

// Every map of [N, 1, H, W] by a window along both axes.
at::Tensor Blur(const at::Tensor& maps, const at::Tensor& window) {
  const std::int64_t n = window.numel();
  return at::conv2d(at::conv2d(maps, window.view({1, 1, n, 1})), window.view({1, 1, 1, n}));
}

at::Tensor Halved(const at::Tensor& x) {
  return at::avg_pool2d(x, {2, 2}, {2, 2}, {x.size(2) % 2, x.size(3) % 2});
}

at::Tensor LogOf(const at::Tensor& v) {
  const at::Tensor above = v.clamp_min(kFloor);
  return at::where(v < kFloor, v / kFloor + (std::log(kFloor) - 1), above.log());
}

}  // namespace

absl::StatusOr<MsSsimOptions> MsSsimOptions::For(std::int64_t height, std::int64_t width) {
  const std::int64_t side = std::min(height, width);
  MsSsimOptions out;
  if (ScalesThatFit(side, kWide) == kMostScales) return out;
  out.window = kNarrow;
  out.scales = std::max(1, ScalesThatFit(side, kNarrow));
  const absl::Status fits = out.Validate(height, width);
  if (!fits.ok()) return fits;
  return out;
}

absl::Status MsSsimOptions::Validate(std::int64_t height, std::int64_t width) const {
  if (window < 1 || window % 2 == 0 || scales < 1 || scales > kMostScales || !(sigma > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a window of ", window, " pixels, sigma ", sigma, ", and ", scales,
                     " scales; expected an odd window, a positive sigma and 1 to 5 scales"));
  }
  const std::int64_t side = std::min(height, width);
  const int fit = ScalesThatFit(side, window);
  if (scales <= fit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("pictures of ", height, " x ", width, " are ", SideAt(side, scales - 1),
                   " pixels at scale ", scales, ", expected ", window, " or more (the window); ",
                   fit > 0 ? absl::StrCat(fit, fit == 1 ? " scale fits" : " scales fit")
                           : "take a smaller window or larger pictures"));
}

std::vector<double> MsSsimOptions::Weights() const {
  std::vector<double> out(kWeights, kWeights + scales);
  if (scales == kMostScales) return out;
  double sum = 0;
  for (const double weight : out) sum += weight;
  for (double& weight : out) weight /= sum;
  return out;
}

at::Tensor MsSsim(const at::Tensor& a, const at::Tensor& b, const MsSsimOptions& options) {
  const at::Tensor window = at::tensor(Window(options), at::kDouble).to(a.options());
  const std::vector<double> weights = options.Weights();
  const std::int64_t rows = a.size(0), channels = a.size(1), maps = rows * channels;
  // A channel is a picture of its own.
  at::Tensor x = a.reshape({maps, 1, a.size(2), a.size(3)});
  at::Tensor y = b.reshape({maps, 1, b.size(2), b.size(3)});
  at::Tensor log;
  for (int s = 0; s < options.scales; ++s) {
    if (s > 0) {
      x = Halved(x);
      y = Halved(y);
    }
    const at::Tensor blurred = Blur(at::cat({x, y, x * x, y * y, x * y}), window);
    const auto part = [&](std::int64_t k) { return blurred.narrow(0, k * maps, maps); };
    const at::Tensor mx = part(0), my = part(1);
    const at::Tensor xx = mx * mx, yy = my * my, xy = mx * my;
    const at::Tensor contrast = (2 * (part(4) - xy) + kC2) / (part(2) - xx + part(3) - yy + kC2);
    const bool last = s + 1 == options.scales;
    const at::Tensor similarity = last ? contrast * ((2 * xy + kC1) / (xx + yy + kC1)) : contrast;
    const at::Tensor term =
        LogOf(similarity.flatten(1).mean(1)) * weights[static_cast<std::size_t>(s)];
    log = log.defined() ? log + term : term;
  }
  return log.exp().view({rows, channels}).mean(1);
}

}  // namespace mergeplan::autoencoding
