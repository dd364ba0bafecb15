#include "adapters/unet/blocks.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "adapters/layers/recompute.h"

namespace mergeplan::unet {
namespace {

using layers::Activation;
using layers::Attention;
using layers::AttentionOptions;
using layers::Conv;
using layers::GroupNorm;
using layers::Resample;
using layers::Resnet;
using layers::ResnetOptions;
using layers::Scope;

bool HasAttention(BlockKind kind) {
  return kind == BlockKind::kAttention || kind == BlockKind::kAttentionSkip;
}

// How many groups the class gives a norm of a Skip block.
std::int64_t AutomaticGroups(std::int64_t channels) {
  return std::min<std::int64_t>(channels / 4, 32);
}

ResnetOptions OptionsOf(const Config& config, std::int64_t in, std::int64_t out) {
  ResnetOptions o;
  o.in = in;
  o.out = out;
  o.time = config.time_embedding_dim;
  o.eps = config.norm_eps;
  o.dropout = config.dropout;
  o.activation = layers::ActivationOf(config.activation);
  o.scale_shift = config.time_scale_shift;
  o.groups = o.groups_out = config.norm_num_groups.value_or(AutomaticGroups(in));
  return o;
}

ResnetOptions SkipOptions(const Config& config, std::int64_t in, std::int64_t out) {
  ResnetOptions o = OptionsOf(config, in, out);
  o.groups = AutomaticGroups(in);
  o.groups_out = AutomaticGroups(out);
  o.output_scale = std::sqrt(2.0);
  return o;
}

ResnetOptions Resampling2d(ResnetOptions o, Resample resample, bool skip) {
  o.resample = resample;
  o.always_shortcut = skip;
  return o;
}

AttentionOptions AttentionOf(const Config& config, std::int64_t channels, bool skip) {
  AttentionOptions o;
  o.channels = channels;
  o.head_width = config.attention_head_dim.value_or(channels);
  o.heads = channels / o.head_width;
  o.eps = config.norm_eps;
  o.groups = skip ? 32 : config.norm_num_groups.value_or(AutomaticGroups(channels));
  o.output_scale = skip ? std::sqrt(2.0) : 1;
  return o;
}

void Note(BlockFacts& facts, const AttentionOptions& options) {
  ++facts.attentions;
  facts.heads = options.heads;
  facts.head_width = options.head_width;
}

}  // namespace

at::Tensor Unit::Forward(const at::Tensor& x, const Pass& pass) const {
  const auto run = [unit = *this, training = pass.training](const std::vector<at::Tensor>& inputs) {
    const at::Tensor h = unit.resnet.Forward(inputs[0], inputs[1], training);
    return unit.attention ? unit.attention.Forward(h) : h;
  };
  if (!pass.checkpoint) return run({x, pass.time});
  std::vector<at::Tensor> parameters = resnet.Tensors();
  if (attention) {
    for (at::Tensor& tensor : attention.Tensors()) parameters.push_back(std::move(tensor));
  }
  return layers::Recompute(run, {x, pass.time}, parameters, pass.training && resnet.draws());
}

DownBlock::DownBlock(const Scope& scope, const Config& c, std::int64_t level) {
  const BlockKind kind = c.down_blocks[level];
  const bool skip = IsSkip(kind), halves = level + 1 < c.levels();
  const std::int64_t out = c.block_out_channels[level];
  const std::int64_t in = level == 0 ? out : c.block_out_channels[level - 1];
  facts_ = {absl::StrCat("down_blocks.", level), BlockName(kind, false), in, out};
  units_.resize(c.layers_per_block);
  // Attention before resnets, as the class has its parameters in order.
  for (std::int64_t k = 0; k < c.layers_per_block && HasAttention(kind); ++k) {
    const AttentionOptions o = AttentionOf(c, out, skip);
    units_[k].attention = Attention(scope / "attentions" / k, o);
    Note(facts_, o);
  }
  for (std::int64_t k = 0; k < c.layers_per_block; ++k) {
    const std::int64_t channels = k == 0 ? in : out;
    units_[k].resnet = Resnet(scope / "resnets" / k,
                              skip ? SkipOptions(c, channels, out) : OptionsOf(c, channels, out));
    ++facts_.resnets;
  }
  if (!halves) return;
  facts_.resampling = "down";
  if (skip) {
    ResnetOptions o = Resampling2d(SkipOptions(c, out, out), Resample::kDownFir, true);
    resnet_ = Resnet(scope / "resnet_down", o);
    skip_conv_ = Conv(scope / "skip_conv", 3, out, 1);
  } else if (kind == BlockKind::kResnet ||
             (kind == BlockKind::kAttention && c.downsample == Resampling::kResnet)) {
    resnet_ = Resnet(scope / "downsamplers" / 0,
                     Resampling2d(OptionsOf(c, out, out), Resample::kDown, false));
  } else {
    conv_padding_ = c.downsample_padding;
    conv_ = Conv(scope / "downsamplers" / 0 / "conv", out, out, 3, 2, conv_padding_);
  }
}

at::Tensor DownBlock::Forward(at::Tensor x, at::Tensor& picture, std::vector<at::Tensor>& skips,
                              const Pass& pass) const {
  for (const Unit& unit : units_) {
    x = unit.Forward(x, pass);
    skips.push_back(x);
  }
  if (facts_.resampling.empty()) return x;
  if (resnet_) {
    x = Unit{*resnet_, {}}.Forward(x, pass);
  } else {
    x = conv_(conv_padding_ == 0 ? layers::PadBottomRight(x) : x);
  }
  if (skip_conv_) {
    picture = layers::DownsampleFir(picture);
    x = skip_conv_(picture).add_(x);
  }
  skips.push_back(x);
  return x;
}

MidBlock::MidBlock(const Scope& scope, const Config& c) {
  const std::int64_t channels = c.block_out_channels.back();
  facts_ = {"mid_block", "UNetMidBlock2D", channels, channels};
  facts_.resnets = 2;
  ResnetOptions o = OptionsOf(c, channels, channels);
  o.output_scale = c.mid_block_scale_factor;
  if (c.add_attention) {
    AttentionOptions a = AttentionOf(c, channels, false);
    // With scale and shift the class has no norm here unless it is asked for.
    a.groups = c.attn_norm_num_groups.value_or(c.time_scale_shift ? 0 : o.groups);
    a.output_scale = c.mid_block_scale_factor;
    attention_ = Attention(scope / "attentions" / 0, a);
    Note(facts_, a);
  }
  first_ = Resnet(scope / "resnets" / 0, o);
  second_ = Resnet(scope / "resnets" / 1, o);
}

at::Tensor MidBlock::Forward(at::Tensor x, const Pass& pass) const {
  x = Unit{first_, attention_}.Forward(x, pass);
  return Unit{second_, {}}.Forward(x, pass);
}

UpBlock::UpBlock(const Scope& scope, const Config& c, std::int64_t index) {
  const BlockKind kind = c.up_blocks[index];
  const std::int64_t level = c.levels() - 1 - index;
  const bool doubles = level > 0;
  skip_ = IsSkip(kind);
  const std::int64_t out = c.block_out_channels[level];
  const std::int64_t from = index == 0 ? out : c.block_out_channels[level + 1];
  const std::int64_t next = c.block_out_channels[std::max<std::int64_t>(level - 1, 0)];
  facts_ = {absl::StrCat("up_blocks.", index), BlockName(kind, true), from, out};
  const std::int64_t count = c.layers_per_block + 1;
  units_.resize(count);
  // A Skip block has a single attention, behind its last resnet.
  for (std::int64_t k = skip_ ? count - 1 : 0; k < count && HasAttention(kind); ++k) {
    const AttentionOptions o = AttentionOf(c, out, skip_);
    units_[k].attention = Attention(scope / "attentions" / (skip_ ? 0 : k), o);
    Note(facts_, o);
  }
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t inner = k == 0 ? from : out, beside = k + 1 == count ? next : out;
    ResnetOptions o =
        skip_ ? SkipOptions(c, inner + beside, out) : OptionsOf(c, inner + beside, out);
    if (kind == BlockKind::kAttentionSkip) {
      // The class divides one of the two terms only.
      o.groups = std::min<std::int64_t>(inner + beside / 4, 32);
    }
    units_[k].resnet = Resnet(scope / "resnets" / k, o);
    ++facts_.resnets;
  }
  if (!doubles) return;
  facts_.resampling = "up";
  if (skip_) {
    resnet_ =
        Resnet(scope / "resnet_up", Resampling2d(SkipOptions(c, out, out), Resample::kUpFir, true));
    skip_conv_ = Conv(scope / "skip_conv", out, 3, 3, 1, 1);
    skip_norm_ = GroupNorm(scope / "skip_norm", AutomaticGroups(out), out, c.norm_eps);
  } else if (kind == BlockKind::kResnet ||
             (kind == BlockKind::kAttention && c.upsample == Resampling::kResnet)) {
    resnet_ = Resnet(scope / "upsamplers" / 0,
                     Resampling2d(OptionsOf(c, out, out), Resample::kUp, false));
  } else {
    conv_ = Conv(scope / "upsamplers" / 0 / "conv", out, out, 3, 1, 1);
  }
}

at::Tensor UpBlock::Forward(at::Tensor x, at::Tensor& picture, std::vector<at::Tensor>& skips,
                            const Pass& pass) const {
  for (const Unit& unit : units_) {
    x = at::cat({x, skips.back()}, 1);
    skips.pop_back();
    x = unit.Forward(x, pass);
  }
  if (skip_) {
    if (picture.defined()) picture = layers::UpsampleFir(picture);
    if (skip_conv_) {
      const at::Tensor more = skip_conv_(layers::Activate(Activation::kSilu, skip_norm_(x)));
      picture = picture.defined() ? picture.add(more) : more;
    }
  }
  if (resnet_) return Unit{*resnet_, {}}.Forward(x, pass);
  if (conv_) return conv_(layers::UpsampleNearest(x));
  return x;
}

}  // namespace mergeplan::unet
