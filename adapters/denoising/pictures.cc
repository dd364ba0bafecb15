#include "adapters/denoising/pictures.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/network/inputs.h"
#include "adapters/network/steps.h"
#include "adapters/network/try.h"
#include "adapters/noise/noise.h"
#include "planner/base/status_macros.h"
#include "planner/report/png.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::denoising {
namespace {

constexpr std::int64_t kRowsAtATime = 64;
constexpr int kGap = 1;
constexpr std::uint8_t kGapShade = 128;

}  // namespace

absl::StatusOr<at::Tensor> DrawSamples(network::Module& module, const network::Signature& signature,
                                       const Schedule& schedule, std::int64_t rows,
                                       std::uint64_t seed, at::Device device,
                                       const at::Tensor& label) {
  MP_ASSIGN_OR_RETURN(const network::NetworkSteps steps,
                      network::NetworkSteps::Create(signature, schedule));
  const int T = schedule.steps();
  network::RowStream name;
  name.seed = seed;
  const NoiseStream noise(name.Name(network::Lane::kHeldOut));
  const std::int64_t d = signature.dimensions();
  std::vector<at::Tensor> parts;
  return network::Try("samples", [&]() -> absl::StatusOr<at::Tensor> {
    const c10::NoGradGuard no_gradients;
    for (std::int64_t first = 0; first < rows; first += kRowsAtATime) {
      std::vector<std::int64_t> shape = {std::min(kRowsAtATime, rows - first)};
      shape.insert(shape.end(), signature.shape.begin(), signature.shape.end());
      at::Tensor z = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
      noise.FillAt(static_cast<std::uint64_t>(first * d), z.mutable_data_ptr<float>(), z.numel());
      const at::Tensor classes = label.defined() ? label.narrow(0, first, shape[0]) : label;
      z = z.to(device, steps.state_type()) * std::hypot(schedule.alpha[T], schedule.sigma[T]);
      for (int t = T; t >= 1; --t) {
        MP_ASSIGN_OR_RETURN(z, steps.Jump(module, z, t, t - 1, classes));
      }
      parts.push_back(z * schedule.data_scale);
    }
    at::Tensor out = at::cat(parts);
    if (at::isfinite(out).all().item<bool>()) return out;
    return absl::FailedPreconditionError(
        "the samples hold numbers that are not finite; the training may have diverged");
  });
}

absl::StatusOr<std::string> EncodeGrid(const at::Tensor& samples, const std::string& scaling,
                                       std::int64_t columns) {
  if (samples.dim() != 4 || samples.size(0) < 1 || (samples.size(1) != 1 && samples.size(1) != 3)) {
    return absl::InvalidArgumentError(
        "samples have no 1 or 3 channels of pixels, expected [N, C, H, W] with those");
  }
  MP_ASSIGN_OR_RETURN(const Scaling scale, ParseScaling(scaling));
  return network::Try("samples", [&]() -> absl::StatusOr<std::string> {
    const at::Tensor host = samples.detach().to(at::kCPU, at::kDouble).contiguous();
    const std::int64_t N = host.size(0), C = host.size(1), H = host.size(2), W = host.size(3);
    const auto square =
        static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(N * H) / W)));
    const std::int64_t across = std::min(N, columns > 0 ? columns : square);
    const std::int64_t down = (N + across - 1) / across;
    const std::int64_t width = across * (W + kGap) - kGap, height = down * (H + kGap) - kGap;
    std::vector<std::uint8_t> pixels(width * height * C, kGapShade);
    const auto* values = host.const_data_ptr<double>();
    for (std::int64_t n = 0; n < N; ++n) {
      const std::int64_t top = n / across * (H + kGap), left = n % across * (W + kGap);
      for (std::int64_t c = 0; c < C; ++c) {
        for (std::int64_t y = 0; y < H; ++y) {
          for (std::int64_t x = 0; x < W; ++x) {
            const double value = scale.Invert(values[((n * C + c) * H + y) * W + x]);
            pixels[((top + y) * width + left + x) * C + c] =
                static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0, 255.0)));
          }
        }
      }
    }
    return EncodePng(static_cast<int>(width), static_cast<int>(height), static_cast<int>(C),
                     pixels);
  });
}

}  // namespace mergeplan::denoising
