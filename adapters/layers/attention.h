#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "adapters/layers/layers.h"
#include "adapters/layers/registry.h"

namespace mergeplan::layers {

struct AttentionOptions {
  std::int64_t channels = 0;
  std::int64_t heads = 1;
  std::int64_t head_width = 1;  // heads * head_width may be less than channels
  std::int64_t groups = 0;      // of the norm before it; 0: none
  double eps = 1e-5;
  double output_scale = 1;
};

// Self-attention over the places of a picture, plus what came in.
class Attention {
 public:
  Attention() = default;
  Attention(const Scope& scope, const AttentionOptions& options);

  // x: [B, channels, H, W] -> the same shape. The H W x H W weights are not stored where LibTorch
  // has a fused kernel.
  at::Tensor Forward(const at::Tensor& x) const;
  std::vector<at::Tensor> Tensors() const;
  explicit operator bool() const { return static_cast<bool>(query_); }

 private:
  AttentionOptions options_;
  GroupNorm norm_;
  Linear query_, key_, value_, out_;
};

}  // namespace mergeplan::layers
