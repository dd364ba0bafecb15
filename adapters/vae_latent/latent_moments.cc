#include "adapters/vae_latent/latent_moments.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addr.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/mm.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/stream/stream.h"

namespace mergeplan {
namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 23;  // numbers widened to float64 at once

std::vector<double> OnHost(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kCPU).contiguous();
  return std::vector<double>(flat.const_data_ptr<double>(),
                             flat.const_data_ptr<double>() + flat.numel());
}

void Check(const absl::Status& status) { TORCH_CHECK(status.ok(), std::string(status.message())); }

}  // namespace

const latents_device::Kernels* LatentMoments::KernelsFor(const at::Tensor& rows) const {
  if (!NumberOf(rows.scalar_type())) return nullptr;
  if (kernels_ != nullptr) return kernels_;
  return rows.is_cuda() ? latents_device::CudaKernels() : nullptr;
}

LatentMoments::OnDevice LatentMoments::MeasureBy(const latents_device::Kernels& kernels,
                                                 const at::Tensor& rows, bool covariance) {
  const at::Tensor data = rows.contiguous(), shift = data[0].to(at::kDouble);
  const std::int64_t n = data.size(0), d = data.size(1);
  const device::Number number = *NumberOf(data.scalar_type());
  const absl::StatusOr<void*> stream = StreamOf(data);
  Check(stream.status());
  const at::Tensor partial =
      at::empty({latents_device::BlocksOf(kernels, n, d), d, 4}, shift.options());
  const at::Tensor out = at::empty({4, d}, shift.options());
  auto* moments = static_cast<latents_device::Moments*>(partial.mutable_data_ptr());
  const auto* first = shift.const_data_ptr<double>();
  Check(latents_device::Sum(kernels, *stream, {data.const_data_ptr(), number, n, d}, first, moments,
                            out.mutable_data_ptr<double>()));
  OnDevice sums{n, out[0], out[1], out[2], out[3], {}};
  if (!covariance) return sums;
  // All tiles are centred on the mean of all rows, so their products simply add up.
  const std::int64_t step = std::max<std::int64_t>(1, kChunk / d);
  for (std::int64_t begin = 0; begin < n; begin += step) {
    const std::int64_t some = std::min(step, n - begin);
    const at::Tensor tile = at::empty({some, d}, shift.options());
    const auto* from = static_cast<const char*>(data.const_data_ptr()) +
                       begin * d * static_cast<std::int64_t>(data.element_size());
    Check(kernels.Run(*stream, latents_device::CentreArgs{some * d, d, from, number, first, moments,
                                                          tile.mutable_data_ptr<double>()}));
    if (begin == 0) {
      sums.comoment = at::mm(tile.t(), tile);
    } else {
      sums.comoment.addmm_(tile.t(), tile);
    }
  }
  sums.comoment.diagonal().copy_(sums.m2);  // the same numbers in both
  return sums;
}

// The first sample is taken off before the mean is, which is exact where it matters.
LatentMoments::OnDevice LatentMoments::Measure(const at::Tensor& rows, bool covariance) {
  const at::Tensor shift = rows[0].to(at::kDouble);
  at::Tensor x = rows.to(at::kDouble) - shift;
  const at::Tensor mean = x.mean(0);
  x = x - mean;
  const at::Tensor square = x * x;
  OnDevice out{
      rows.size(0), mean + shift, square.sum(0), (square * x).sum(0), (square * square).sum(0), {}};
  if (covariance) {
    out.comoment = at::mm(x.t(), x);
    out.comoment.diagonal().copy_(out.m2);  // the same numbers in both
  }
  return out;
}

void LatentMoments::Join(const OnDevice& b, OnDevice& a) {
  const double na = static_cast<double>(a.count), nb = static_cast<double>(b.count);
  const double fa = na / (na + nb), fb = nb / (na + nb);
  const at::Tensor delta = b.mean - a.mean, square = delta * delta;
  // Fourth before third before second: each needs the old lower ones.
  a.m4 = a.m4 + b.m4 + square * square * (na * fb * (fa * fa - fa * fb + fb * fb)) +
         (b.m2 * (fa * fa) + a.m2 * (fb * fb)) * square * 6 + (b.m3 * fa - a.m3 * fb) * delta * 4;
  a.m3 = a.m3 + b.m3 + square * delta * (na * fb * (fa - fb)) + (b.m2 * fa - a.m2 * fb) * delta * 3;
  a.m2 = a.m2 + b.m2 + square * (na * fb);
  a.mean = a.mean + delta * fb;
  if (a.comoment.defined()) {
    a.comoment = at::addr(a.comoment + b.comoment, delta, delta, 1, na * fb);
  }
  a.count += b.count;
}

absl::Status LatentMoments::Add(const at::Tensor& latents) {
  const auto refuse = [](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("latents: ", what));
  };
  if (!latents.defined()) return refuse("an undefined tensor, expected (n, ...)");
  const auto words = [](const auto& axes) {
    return absl::StrCat("[", absl::StrJoin(axes, ", "), "]");
  };
  if (latents.dim() < 2 || (latents.numel() == 0 && latents.size(0) > 0)) {
    return refuse(absl::StrCat("have the shape ", words(latents.sizes()),
                               ", expected (n, ...) with at least one number a sample"));
  }
  if (latents.is_complex()) return refuse("are complex, expected real numbers");
  const std::vector<std::int64_t> shape(latents.sizes().begin() + 1, latents.sizes().end());
  if (sums_ && shape != shape_) {
    return refuse(absl::StrCat("have samples of the shape ", words(shape), ", expected ",
                               words(shape_), " as in the first batch"));
  }
  if (latents.size(0) == 0) return absl::OkStatus();
  try {
    const c10::InferenceMode guard;
    at::Tensor rows = latents.detach().flatten(1);
    if (sums_) rows = rows.to(sums_->mean.device());
    std::optional<OnDevice> batch;
    if (const auto* kernels = KernelsFor(rows)) batch = MeasureBy(*kernels, rows, covariance_);
    const std::int64_t step = std::max<std::int64_t>(1, kChunk / rows.size(1));
    for (std::int64_t first = batch ? rows.size(0) : 0; first < rows.size(0); first += step) {
      OnDevice part =
          Measure(rows.narrow(0, first, std::min(step, rows.size(0) - first)), covariance_);
      if (!batch) {
        batch = std::move(part);
      } else {
        Join(part, *batch);
      }
    }
    const at::Tensor broken = at::isfinite(batch->mean + batch->m2).logical_not().nonzero();
    if (broken.size(0) > 0) {
      return refuse(
          absl::StrCat("hold a value that is not finite, or too large to be squared, in dimension ",
                       broken[0][0].item<std::int64_t>()));
    }
    if (!sums_) {
      sums_ = *std::move(batch);
      shape_ = shape;
      return absl::OkStatus();
    }
    OnDevice joined = *sums_;  // Join replaces tensors, so an error leaves the old ones
    Join(*batch, joined);
    sums_ = std::move(joined);
    return absl::OkStatus();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    if (text.find("memory") == std::string::npos) return absl::InternalError(text);
    return absl::ResourceExhaustedError(absl::StrCat("latents: ", text));
  }
}

absl::StatusOr<CentralMoments> LatentMoments::Sums() const {
  if (!sums_) return absl::FailedPreconditionError("no latents were added");
  try {
    CentralMoments out;
    out.count = sums_->count;
    out.shape = shape_;
    out.mean = OnHost(sums_->mean);
    out.m2 = OnHost(sums_->m2);
    out.m3 = OnHost(sums_->m3);
    out.m4 = OnHost(sums_->m4);
    if (covariance_) out.comoment = OnHost(sums_->comoment);
    return out;
  } catch (const c10::Error& error) {
    return absl::InternalError(error.what_without_backtrace());
  }
}

}  // namespace mergeplan
