#pragma once

// The layers of pretrained image networks as plain functions over named tensors. They throw
// c10::Error, as LibTorch does; the networks that are made of them turn it into a Status.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "adapters/layers/registry.h"

namespace mergeplan::layers {

// x: [..., in] -> [..., out].
struct Linear {
  at::Tensor weight, bias;

  Linear() = default;
  Linear(const Scope& scope, std::int64_t in, std::int64_t out);
  at::Tensor operator()(const at::Tensor& x) const;
  explicit operator bool() const { return weight.defined(); }
};

// x: [B, in, H, W] -> [B, out, H', W']; square kernels.
struct Conv {
  at::Tensor weight, bias;
  std::int64_t stride = 1, padding = 0;

  Conv() = default;
  Conv(const Scope& scope, std::int64_t in, std::int64_t out, std::int64_t kernel,
       std::int64_t stride = 1, std::int64_t padding = 0, bool with_bias = true);
  at::Tensor operator()(const at::Tensor& x) const;
  explicit operator bool() const { return weight.defined(); }
};

struct GroupNorm {
  at::Tensor weight, bias;
  std::int64_t groups = 1;
  double eps = 1e-5;

  GroupNorm() = default;
  GroupNorm(const Scope& scope, std::int64_t groups, std::int64_t channels, double eps);
  at::Tensor operator()(const at::Tensor& x) const;
  explicit operator bool() const { return weight.defined(); }
};

// A row per index.
struct Embedding {
  at::Tensor weight;

  Embedding() = default;
  Embedding(const Scope& scope, std::int64_t rows, std::int64_t width);
  at::Tensor operator()(const at::Tensor& index) const;
  explicit operator bool() const { return weight.defined(); }
};

enum class Activation { kSilu, kMish, kGelu, kRelu };
Activation ActivationOf(const std::string& name);
// The argument is the caller's to lose: it is overwritten where no gradient needs it.
at::Tensor Activate(Activation activation, at::Tensor x);
// Keeps its argument.
at::Tensor Activated(Activation activation, const at::Tensor& x);

// `factor` times the height and width, every value repeated.
at::Tensor UpsampleNearest(const at::Tensor& x, std::int64_t factor = 2);
// Half the height and width, means of four.
at::Tensor DownsampleMean(const at::Tensor& x);
// The same with the filter 1 3 3 1 in both directions, zeros outside.
at::Tensor UpsampleFir(const at::Tensor& x);
at::Tensor DownsampleFir(const at::Tensor& x);
// One row of zeros at the bottom and one column at the right.
at::Tensor PadBottomRight(const at::Tensor& x);

}  // namespace mergeplan::layers
