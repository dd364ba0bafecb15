#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapters/layers/attention.h"
#include "adapters/layers/layers.h"
#include "adapters/layers/registry.h"
#include "adapters/layers/resnet.h"
#include "adapters/unet/config.h"

namespace mergeplan::unet {

// How a forward pass goes.
struct Pass {
  at::Tensor time;  // [B, time_embedding_dim], activated
  bool training = false;
  bool checkpoint = false;  // recompute in the backward pass
};

// What a block is, for people.
struct BlockFacts {
  std::string name;  // down_blocks.0
  std::string type;
  std::int64_t in = 0, out = 0;  // channels
  std::int64_t resnets = 0, attentions = 0, heads = 0, head_width = 0;
  std::string resampling{};  // "", "down", "up"
};

// One resnet and, where the block has it, the attention after it.
struct Unit {
  layers::Resnet resnet;
  layers::Attention attention;  // may be empty
  at::Tensor Forward(const at::Tensor& x, const Pass& pass) const;
};

class DownBlock {
 public:
  DownBlock(const layers::Scope& scope, const Config& config, std::int64_t level);

  // Pushes what the way up will need. `picture` is the input at the resolution of this block, kept
  // by Skip blocks.
  at::Tensor Forward(at::Tensor x, at::Tensor& picture, std::vector<at::Tensor>& skips,
                     const Pass& pass) const;
  const BlockFacts& facts() const { return facts_; }

 private:
  BlockFacts facts_;
  std::vector<Unit> units_;
  layers::Conv conv_;  // halves
  std::int64_t conv_padding_ = 1;
  std::optional<layers::Resnet> resnet_;  // halves
  layers::Conv skip_conv_;                // from the picture
};

class MidBlock {
 public:
  MidBlock(const layers::Scope& scope, const Config& config);
  at::Tensor Forward(at::Tensor x, const Pass& pass) const;
  const BlockFacts& facts() const { return facts_; }

 private:
  BlockFacts facts_;
  layers::Attention attention_;
  layers::Resnet first_, second_;
};

class UpBlock {
 public:
  // `index` counts from the lowest resolution.
  UpBlock(const layers::Scope& scope, const Config& config, std::int64_t index);

  // Pops what the way down left. `picture`: the output so far as Skip blocks build it, undefined
  // before the first.
  at::Tensor Forward(at::Tensor x, at::Tensor& picture, std::vector<at::Tensor>& skips,
                     const Pass& pass) const;
  const BlockFacts& facts() const { return facts_; }

 private:
  BlockFacts facts_;
  std::vector<Unit> units_;
  layers::Conv conv_;                     // after doubling
  std::optional<layers::Resnet> resnet_;  // doubles
  bool skip_ = false;
  layers::Conv skip_conv_;  // to the picture
  layers::GroupNorm skip_norm_;
};

}  // namespace mergeplan::unet
