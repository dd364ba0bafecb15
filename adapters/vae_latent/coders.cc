#include "adapters/vae_latent/coders.h"

#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>

namespace mergeplan::vae {

using layers::Activate;
using layers::Activated;
using layers::Activation;
using layers::Attention;
using layers::AttentionOptions;
using layers::Conv;
using layers::GroupNorm;
using layers::Resnet;
using layers::ResnetOptions;
using layers::Scope;

namespace {

constexpr double kEps = 1e-6;

ResnetOptions OptionsOf(const Config& c, std::int64_t in, std::int64_t out) {
  ResnetOptions o;
  o.in = in;
  o.out = out;
  o.groups = o.groups_out = c.norm_num_groups;
  o.eps = kEps;
  o.activation = layers::ActivationOf(c.activation);
  return o;
}

// One head of all channels.
AttentionOptions AttentionOf(const Config& c, std::int64_t channels) {
  AttentionOptions o;
  o.channels = o.head_width = channels;
  o.groups = c.norm_num_groups;
  o.eps = kEps;
  return o;
}

}  // namespace

KlCoder::KlCoder(const Scope& scope, const Config& c, bool encoder)
    : encoder_(encoder), activation_(layers::ActivationOf(c.activation)) {
  const std::int64_t wide = c.block_out_channels.back(), narrow = c.block_out_channels.front();
  conv_in_ = encoder ? Conv(scope / "conv_in", c.in_channels, narrow, 3, 1, 1)
                     : Conv(scope / "conv_in", c.latent_channels, wide, 3, 1, 1);
  MakeLevels(scope, c);
  const Scope middle = scope / "mid_block";
  if (c.mid_attention)
    middle_.attention = Attention(middle / "attentions" / 0, AttentionOf(c, wide));
  middle_.resnet = Resnet(middle / "resnets" / 0, OptionsOf(c, wide, wide));
  middle_end_ = Resnet(middle / "resnets" / 1, OptionsOf(c, wide, wide));
  const std::int64_t last = encoder ? wide : narrow;
  norm_out_ = GroupNorm(scope / "conv_norm_out", c.norm_num_groups, last, kEps);
  // Mean and log variance.
  conv_out_ =
      Conv(scope / "conv_out", last, encoder ? 2 * c.latent_channels : c.out_channels, 3, 1, 1);
}

void KlCoder::MakeLevels(const Scope& scope, const Config& c) {
  const auto count = static_cast<std::int64_t>(c.block_out_channels.size());
  std::int64_t in = encoder_ ? c.block_out_channels.front() : c.block_out_channels.back();
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t out = c.block_out_channels[encoder_ ? k : count - 1 - k];
    const Scope block = scope / (encoder_ ? "down_blocks" : "up_blocks") / k;
    Level& level = levels_.emplace_back();
    // The decoder has one more.
    level.units.resize(c.layers_per_block + (encoder_ ? 0 : 1));
    const auto units = static_cast<std::int64_t>(level.units.size());
    // Attention before resnets, as the class has its parameters in order.
    const bool attends = (encoder_ ? c.down_attention : c.up_attention)[k];
    for (std::int64_t u = 0; u < units && attends; ++u) {
      level.units[u].attention = Attention(block / "attentions" / u, AttentionOf(c, out));
    }
    for (std::int64_t u = 0; u < units; ++u) {
      level.units[u].resnet = Resnet(block / "resnets" / u, OptionsOf(c, u == 0 ? in : out, out));
    }
    if (k + 1 < count) {
      level.resample = encoder_ ? Conv(block / "downsamplers" / 0 / "conv", out, out, 3, 2, 0)
                                : Conv(block / "upsamplers" / 0 / "conv", out, out, 3, 1, 1);
    }
    in = out;
  }
}

at::Tensor KlCoder::Run(const Unit& unit, const at::Tensor& x) const {
  const at::Tensor h = unit.resnet.Forward(x, {}, /*training=*/false);
  return unit.attention ? unit.attention.Forward(h) : h;
}

at::Tensor KlCoder::Forward(at::Tensor x) const {
  const auto middle = [&] { x = middle_end_.Forward(Run(middle_, x), {}, /*training=*/false); };
  x = conv_in_(x);
  if (!encoder_) middle();
  for (const Level& level : levels_) {
    for (const Unit& unit : level.units) x = Run(unit, x);
    if (level.resample) {
      x = level.resample(encoder_ ? layers::PadBottomRight(x) : layers::UpsampleNearest(x));
    }
  }
  if (encoder_) middle();
  return conv_out_(Activate(Activation::kSilu, norm_out_(x)));
}

TinyCoder::TinyCoder(const Scope& scope, const Config& c, bool encoder)
    : encoder_(encoder),
      activation_(layers::ActivationOf(c.activation)),
      upsampling_(c.upsampling) {
  const Scope all = scope / "layers";
  const std::int64_t width = encoder ? c.encoder_width : c.decoder_width;
  const std::vector<std::int64_t>& stages = encoder ? c.encoder_blocks : c.decoder_blocks;
  if (!encoder) {
    AddConv(all, c.latent_channels, width, 1, true);
    layers_.push_back({Kind::kActivation, {}});
  }
  for (size_t k = 0; k < stages.size(); ++k) {
    if (encoder) AddConv(all, k == 0 ? c.in_channels : width, width, k == 0 ? 1 : 2, k == 0);
    for (std::int64_t block = 0; block < stages[k]; ++block) AddBlock(all, width);
    if (encoder) continue;
    const bool last = k + 1 == stages.size();
    if (!last) layers_.push_back({Kind::kUpsample, {}});
    AddConv(all, width, last ? c.out_channels : width, 1, last);
  }
  if (encoder) AddConv(all, width, c.latent_channels, 1, true);
}

void TinyCoder::AddConv(const Scope& scope, std::int64_t in, std::int64_t out, std::int64_t stride,
                        bool bias) {
  const Scope here = scope / static_cast<std::int64_t>(layers_.size());
  layers_.push_back({Kind::kConv, {Conv(here, in, out, 3, stride, 1, bias)}});
}

void TinyCoder::AddBlock(const Scope& scope, std::int64_t width) {
  const Scope here = scope / static_cast<std::int64_t>(layers_.size()) / "conv";
  layers_.push_back({Kind::kBlock,
                     {Conv(here / 0, width, width, 3, 1, 1), Conv(here / 2, width, width, 3, 1, 1),
                      Conv(here / 4, width, width, 3, 1, 1)}});
}

at::Tensor TinyCoder::Forward(at::Tensor x) const {
  // The weights were made for [0, 1].
  x = encoder_ ? x.add(1).div(2) : x.div(3).tanh().mul(3);
  for (const Layer& layer : layers_) {
    switch (layer.kind) {
      case Kind::kConv:
        x = layer.convs[0](x);
        break;
      case Kind::kActivation:
        x = Activate(activation_, x);
        break;
      case Kind::kUpsample:
        x = layers::UpsampleNearest(x, upsampling_);
        break;
      case Kind::kBlock: {
        at::Tensor h = Activate(activation_, layer.convs[0](x));
        h = Activate(activation_, layer.convs[1](h));
        h = layer.convs[2](h);
        x = Activate(Activation::kRelu, h.add_(x));
        break;
      }
    }
  }
  return encoder_ ? x : x.mul(2).sub(1);
}

}  // namespace mergeplan::vae
