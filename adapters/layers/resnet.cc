#include "adapters/layers/resnet.h"

#include <ATen/ops/dropout.h>

namespace mergeplan::layers {
namespace {

at::Tensor Resampled(Resample resample, const at::Tensor& x) {
  switch (resample) {
    case Resample::kUp:
      return UpsampleNearest(x);
    case Resample::kDown:
      return DownsampleMean(x);
    case Resample::kUpFir:
      return UpsampleFir(x);
    case Resample::kDownFir:
      return DownsampleFir(x);
    case Resample::kNone:
      break;
  }
  return x;
}

}  // namespace

Resnet::Resnet(const Scope& scope, const ResnetOptions& o)
    : options_(o),
      norm1_(scope / "norm1", o.groups, o.in, o.eps),
      conv1_(scope / "conv1", o.in, o.out, 3, 1, 1) {
  if (o.time > 0)
    time_ = Linear(scope / "time_emb_proj", o.time, o.scale_shift ? 2 * o.out : o.out);
  norm2_ = GroupNorm(scope / "norm2", o.groups_out, o.out, o.eps);
  conv2_ = Conv(scope / "conv2", o.out, o.out, 3, 1, 1);
  if (o.always_shortcut || o.in != o.out) shortcut_ = Conv(scope / "conv_shortcut", o.in, o.out, 1);
}

at::Tensor Resnet::Forward(const at::Tensor& x, const at::Tensor& time, bool training) const {
  at::Tensor h = Activate(options_.activation, norm1_(x));
  const at::Tensor beside = Resampled(options_.resample, x);
  // Sums go into what a convolution made: its backward pass does not need it.
  h = conv1_(Resampled(options_.resample, h));
  at::Tensor t;
  if (time_) t = time_(time).unsqueeze(2).unsqueeze(3);
  if (t.defined() && !options_.scale_shift) h.add_(t);
  h = norm2_(h);
  if (t.defined() && options_.scale_shift) {
    h = h.mul(t.narrow(1, 0, options_.out).add(1)).add_(t.narrow(1, options_.out, options_.out));
  }
  h = Activate(options_.activation, h);
  if (training && options_.dropout > 0) h = at::dropout(h, options_.dropout, /*train=*/true);
  h = conv2_(h);
  h.add_(shortcut_ ? shortcut_(beside) : beside);
  if (options_.output_scale != 1) h.div_(options_.output_scale);
  return h;
}

std::vector<at::Tensor> Resnet::Tensors() const {
  std::vector<at::Tensor> all = {norm1_.weight, norm1_.bias, conv1_.weight, conv1_.bias};
  if (time_) all.insert(all.end(), {time_.weight, time_.bias});
  all.insert(all.end(), {norm2_.weight, norm2_.bias, conv2_.weight, conv2_.bias});
  if (shortcut_) all.insert(all.end(), {shortcut_.weight, shortcut_.bias});
  return all;
}

}  // namespace mergeplan::layers
