#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/status.h"
#include "adapters/layers/layers.h"
#include "adapters/layers/registry.h"
#include "adapters/unet/config.h"

namespace mergeplan::unet {

// [B] float32 -> [B, width] float32: sine and cosine at width/2 frequencies from 1 down to
// (nearly) 1/10000. Always in float32, as the class does it in every precision.
at::Tensor Sinusoids(const at::Tensor& time, std::int64_t width, double freq_shift,
                     bool cosine_first);

// Timesteps and class labels, and what becomes of them: one vector per sample that all resnets see.
class Conditioning {
 public:
  Conditioning() = default;
  Conditioning(const layers::Scope& scope, const Config& config);

  // Shapes, types and, where the tensors are on the CPU, values: a time of which the embedding
  // would be no number, a step or label that has no row. (Reading a device's memory would stop it.)
  absl::Status Check(std::int64_t batch, const at::Tensor& time, const at::Tensor& label) const;
  // [B, time_embedding_dim] in the network's dtype.
  at::Tensor Forward(const at::Tensor& time, const at::Tensor& label) const;

 private:
  at::Tensor Projected(const at::Tensor& time) const;

  TimeEmbedding kind_ = TimeEmbedding::kPositional;
  ClassEmbedding class_kind_ = ClassEmbedding::kNone;
  std::int64_t width_ = 0, steps_ = 0, classes_ = 0, out_ = 0;
  double freq_shift_ = 0;
  bool cosine_first_ = true;
  at::Tensor frequencies_;  // kFourier; not trained
  layers::Embedding steps_table_, class_table_;
  layers::Linear time1_, time2_, class1_, class2_;
};

}  // namespace mergeplan::unet
