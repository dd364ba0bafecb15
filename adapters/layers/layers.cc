#include "adapters/layers/layers.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "absl/strings/str_cat.h"

namespace mergeplan::layers {
namespace {

Start UniformOver(std::int64_t fan_in) {
  return {Start::Kind::kUniform, 1 / std::sqrt(static_cast<double>(fan_in))};
}

// 1 3 3 1 in both directions, of sum `sum`; a single channel.
at::Tensor FirKernel(double sum, const at::Tensor& like) {
  const at::Tensor line = at::tensor({1.0, 3.0, 3.0, 1.0}, like.options().requires_grad(false));
  return at::outer(line, line).mul(sum / 64).view({1, 1, 4, 4});
}

}  // namespace

Linear::Linear(const Scope& scope, std::int64_t in, std::int64_t out)
    : weight(scope.Add("weight", {out, in}, UniformOver(in))),
      bias(scope.Add("bias", {out}, UniformOver(in))) {}

at::Tensor Linear::operator()(const at::Tensor& x) const { return at::linear(x, weight, bias); }

Conv::Conv(const Scope& scope, std::int64_t in, std::int64_t out, std::int64_t kernel,
           std::int64_t stride_in, std::int64_t padding_in, bool with_bias)
    : weight(scope.Add("weight", {out, in, kernel, kernel}, UniformOver(in * kernel * kernel))),
      stride(stride_in),
      padding(padding_in) {
  if (with_bias) bias = scope.Add("bias", {out}, UniformOver(in * kernel * kernel));
}

at::Tensor Conv::operator()(const at::Tensor& x) const {
  return at::conv2d(x, weight, bias, stride, padding);
}

GroupNorm::GroupNorm(const Scope& scope, std::int64_t groups_in, std::int64_t channels,
                     double eps_in)
    : weight(scope.Add("weight", {channels}, {Start::Kind::kOnes})),
      bias(scope.Add("bias", {channels}, {Start::Kind::kZeros})),
      groups(groups_in),
      eps(eps_in) {
  if (groups > 0 && channels % groups == 0) return;
  scope.Fail(absl::StrCat(" has ", channels, " channels, which ", groups, " groups do not divide"));
}

at::Tensor GroupNorm::operator()(const at::Tensor& x) const {
  return at::group_norm(x, groups, weight, bias, eps);
}

Embedding::Embedding(const Scope& scope, std::int64_t rows, std::int64_t width)
    : weight(scope.Add("weight", {rows, width}, {Start::Kind::kNormal, 1})) {}

at::Tensor Embedding::operator()(const at::Tensor& index) const {
  return at::embedding(weight, index);
}

Activation ActivationOf(const std::string& name) {
  if (name == "mish") return Activation::kMish;
  if (name == "gelu") return Activation::kGelu;
  if (name == "relu") return Activation::kRelu;
  return Activation::kSilu;
}

at::Tensor Activated(Activation activation, const at::Tensor& x) {
  switch (activation) {
    case Activation::kMish:
      return at::mish(x);
    case Activation::kGelu:
      return at::gelu(x);
    case Activation::kRelu:
      return at::relu(x);
    case Activation::kSilu:
      break;
  }
  return at::silu(x);
}

at::Tensor Activate(Activation activation, at::Tensor x) {
  if (x.requires_grad() && c10::GradMode::is_enabled()) return Activated(activation, x);
  switch (activation) {
    case Activation::kMish:
      return at::mish_(x);
    case Activation::kGelu:
      return at::gelu_(x);
    case Activation::kRelu:
      return at::relu_(x);
    case Activation::kSilu:
      break;
  }
  return at::silu_(x);
}

at::Tensor UpsampleNearest(const at::Tensor& x, std::int64_t factor) {
  const auto scale = static_cast<double>(factor);
  return at::upsample_nearest2d(x, at::IntArrayRef{factor * x.size(2), factor * x.size(3)}, scale,
                                scale);
}

at::Tensor DownsampleMean(const at::Tensor& x) { return at::avg_pool2d(x, 2, 2); }

at::Tensor UpsampleFir(const at::Tensor& x) {
  // Zeros between the values, then the filter: a transposed convolution of every channel.
  const at::Tensor one = x.reshape({-1, 1, x.size(2), x.size(3)});
  return at::conv_transpose2d(one, FirKernel(4, x), {}, 2, 1)
      .view({x.size(0), x.size(1), 2 * x.size(2), 2 * x.size(3)});
}

at::Tensor DownsampleFir(const at::Tensor& x) {
  const at::Tensor one = x.reshape({-1, 1, x.size(2), x.size(3)});
  return at::conv2d(one, FirKernel(1, x), {}, 2, 1)
      .view({x.size(0), x.size(1), x.size(2) / 2, x.size(3) / 2});
}

at::Tensor PadBottomRight(const at::Tensor& x) { return at::constant_pad_nd(x, {0, 1, 0, 1}); }

}  // namespace mergeplan::layers
