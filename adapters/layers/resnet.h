#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "adapters/layers/layers.h"
#include "adapters/layers/registry.h"

namespace mergeplan::layers {

enum class Resample { kNone, kUp, kDown, kUpFir, kDownFir };

struct ResnetOptions {
  std::int64_t in = 0, out = 0;
  std::int64_t time = 0;  // width of the time embedding; 0: none
  std::int64_t groups = 32, groups_out = 32;
  double eps = 1e-5;
  double dropout = 0;
  Activation activation = Activation::kSilu;
  bool scale_shift = false;  // the embedding scales and shifts the second norm, instead of a shift
  double output_scale = 1;   // what the sum is divided by
  Resample resample = Resample::kNone;
  bool always_shortcut = false;  // a convolution beside the block even where channels agree
};

// norm, activation, (resampling), convolution, time, norm, activation, dropout, convolution, plus
// what came in.
class Resnet {
 public:
  Resnet() = default;
  Resnet(const Scope& scope, const ResnetOptions& options);

  // x: [B, in, H, W]; time: [B, time], activated already, undefined where the block has none.
  at::Tensor Forward(const at::Tensor& x, const at::Tensor& time, bool training) const;
  // Its tensors, in their order.
  std::vector<at::Tensor> Tensors() const;
  bool draws() const { return options_.dropout > 0; }

 private:
  ResnetOptions options_;
  GroupNorm norm1_, norm2_;
  Conv conv1_, conv2_, shortcut_;
  Linear time_;
};

}  // namespace mergeplan::layers
