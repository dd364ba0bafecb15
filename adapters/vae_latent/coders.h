#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "adapters/layers/attention.h"
#include "adapters/layers/layers.h"
#include "adapters/layers/registry.h"
#include "adapters/layers/resnet.h"
#include "adapters/vae_latent/config.h"

namespace mergeplan::vae {

// One direction of an autoencoder. Throws c10::Error.
class Coder {
 public:
  virtual ~Coder() = default;
  virtual at::Tensor Forward(at::Tensor x) const = 0;
};

// AutoencoderKL: resnets without time, by levels; every group norm has eps 1e-6.
class KlCoder : public Coder {
 public:
  KlCoder(const layers::Scope& scope, const Config& config, bool encoder);
  at::Tensor Forward(at::Tensor x) const override;

 private:
  struct Unit {
    layers::Resnet resnet;
    layers::Attention attention;  // may be empty
  };
  struct Level {
    std::vector<Unit> units;
    layers::Conv resample;  // empty at the last level
  };
  at::Tensor Run(const Unit& unit, const at::Tensor& x) const;
  void MakeLevels(const layers::Scope& scope, const Config& config);

  bool encoder_;
  layers::Activation activation_;
  layers::Conv conv_in_, conv_out_;
  std::vector<Level> levels_;
  Unit middle_;
  layers::Resnet middle_end_;
  layers::GroupNorm norm_out_;
};

// AutoencoderTiny: a row of layers, numbered with those that have no weights.
class TinyCoder : public Coder {
 public:
  TinyCoder(const layers::Scope& scope, const Config& config, bool encoder);
  at::Tensor Forward(at::Tensor x) const override;

 private:
  enum class Kind { kConv, kActivation, kBlock, kUpsample };
  struct Layer {
    Kind kind = Kind::kConv;
    std::vector<layers::Conv> convs;  // one, or the three of a block
  };
  void AddConv(const layers::Scope& scope, std::int64_t in, std::int64_t out, std::int64_t stride,
               bool bias);
  void AddBlock(const layers::Scope& scope, std::int64_t width);

  bool encoder_;
  layers::Activation activation_;
  std::int64_t upsampling_;
  std::vector<Layer> layers_;
};

}  // namespace mergeplan::vae
