#include "adapters/unet/config.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "adapters/layers/options.h"
#include "planner/base/status_macros.h"
#include "planner/schedule/json_text.h"

namespace mergeplan::unet {
namespace {

using layers::Options;

constexpr char kClass[] = "UNet2DModel";
constexpr std::int64_t kMostChannels = 1 << 20;
constexpr size_t kMostLevels = 16;
constexpr BlockKind kKinds[] = {BlockKind::kPlain, BlockKind::kAttention, BlockKind::kResnet,
                                BlockKind::kSkip, BlockKind::kAttentionSkip};

// Old files write UNetResDownBlock2D and the like.
nlohmann::json WithoutPrefix(const nlohmann::json& value) {
  constexpr std::string_view kPrefix = "UNetRes";
  if (!value.is_string()) return value;
  std::string word = value.get<std::string>();
  if (word.rfind(kPrefix, 0) == 0) word.erase(0, kPrefix.size());
  return word;
}

void TakeBlocks(Options& options, bool up, std::vector<BlockKind>& out) {
  const std::string key = up ? "up_block_types" : "down_block_types";
  const nlohmann::json* value = options.Find(key);
  if (options.IsNull(key)) return options.Expect(key, "a list of block types");
  if (value == nullptr) return;
  if (!value->is_array() || value->empty() || value->size() > kMostLevels) {
    return options.Expect(key, absl::StrCat("a list of 1 to ", kMostLevels, " block types"));
  }
  std::vector<std::string> words;
  for (const BlockKind kind : kKinds) words.push_back(BlockName(kind, up));
  out.clear();
  for (const nlohmann::json& element : *value) {
    const auto k = options.WordOf(key, WithoutPrefix(element), words);
    if (!k) return;
    out.push_back(kKinds[*k]);
  }
}

void TakeSampleSize(Options& options, Config& c) {
  if (const nlohmann::json* value = options.Find("sample_size"); value != nullptr) {
    if (value->is_array()) {
      options.Counts("sample_size", 1, kMostChannels, c.sample_size);
      if (c.sample_size.size() != 2) options.Expect("sample_size", "one number or two");
    } else {
      std::int64_t size = 0;
      options.Count("sample_size", 1, kMostChannels, size);
      c.sample_size = {size, size};
    }
  }
}

void TakeTimeAndClass(Options& options, Config& c) {
  if (const auto k = options.Word("time_embedding_type", {"positional", "fourier", "learned"})) {
    c.time_embedding = static_cast<TimeEmbedding>(*k);
  }
  std::optional<std::int64_t> number;
  options.OptionalCount("time_embedding_dim", 0, kMostChannels, number);
  c.time_embedding_dim = number.value_or(0);  // the class takes 0 as not given
  options.Number("freq_shift", -1e6, 1e6, c.freq_shift);
  options.Bool("flip_sin_to_cos", c.flip_sin_to_cos);
  number.reset();
  options.OptionalCount("num_train_timesteps", 1, 1 << 30, number);
  c.num_train_timesteps = number.value_or(0);
  if (c.time_embedding == TimeEmbedding::kLearned && !number) {
    options.Expect("num_train_timesteps", "a number, since time_embedding_type is learned");
  }
  number.reset();
  options.OptionalCount("num_class_embeds", 1, 1 << 30, number);
  c.num_class_embeds = number.value_or(0);
  if (const nlohmann::json* value = options.Find("class_embed_type"); value != nullptr) {
    if (const auto k = options.WordOf("class_embed_type", *value, {"timestep", "identity"})) {
      c.class_embedding = *k == 0 ? ClassEmbedding::kTimestep : ClassEmbedding::kIdentity;
    }
  } else if (number) {
    c.class_embedding = ClassEmbedding::kTable;
  }
}

void TakeOptions(Options& options, Config& c) {
  TakeSampleSize(options, c);
  options.Count("in_channels", 1, kMostChannels, c.in_channels);
  options.Count("out_channels", 1, kMostChannels, c.out_channels);
  options.Bool("center_input_sample", c.center_input_sample);
  TakeTimeAndClass(options, c);
  TakeBlocks(options, /*up=*/false, c.down_blocks);
  TakeBlocks(options, /*up=*/true, c.up_blocks);
  c.mid_block = !options.IsNull("mid_block_type");
  if (c.mid_block) options.Word("mid_block_type", {"UNetMidBlock2D"});
  options.Find("mid_block_type");
  options.Counts("block_out_channels", 1, kMostChannels, c.block_out_channels);
  options.Count("layers_per_block", 1, 1000, c.layers_per_block);
  options.Number("mid_block_scale_factor", 1e-6, 1e6, c.mid_block_scale_factor);
  options.Count("downsample_padding", 0, 1, c.downsample_padding);
  // The class reads null as conv.
  for (const auto& [key, out] :
       {std::pair("downsample_type", &c.downsample), std::pair("upsample_type", &c.upsample)}) {
    const nlohmann::json* value = options.Find(key);
    if (value == nullptr) continue;
    if (const auto k = options.WordOf(key, *value, {"conv", "resnet"})) {
      *out = static_cast<Resampling>(*k);
    }
  }
  options.Number("dropout", 0, 1, c.dropout);
  options.Activation("act_fn", c.activation);
  options.OptionalCount("attention_head_dim", 1, kMostChannels, c.attention_head_dim);
  options.OptionalCount("norm_num_groups", 1, kMostChannels, c.norm_num_groups);
  options.OptionalCount("attn_norm_num_groups", 1, kMostChannels, c.attn_norm_num_groups);
  options.Number("norm_eps", 1e-30, 1, c.norm_eps);
  if (const auto k = options.Word("resnet_time_scale_shift", {"default", "scale_shift"})) {
    c.time_scale_shift = *k == 1;
  }
  options.Bool("add_attention", c.add_attention);
}

// A skip holds the picture at the resolution of its block: it is halved or doubled by Skip blocks
// only, and only added to three channels.
void CheckSkips(Options& options, const Config& c) {
  const auto levels = static_cast<size_t>(c.levels());
  for (size_t k = 0; k + 1 < levels; ++k) {
    if (!IsSkip(c.down_blocks[k])) continue;
    if (c.in_channels != 3) options.Expect("in_channels", "3 with Skip blocks");
    for (size_t before = 0; before < k; ++before) {
      if (!IsSkip(c.down_blocks[before])) {
        options.Expect("down_block_types", "Skip blocks only before a Skip block that halves");
      }
    }
  }
  for (size_t k = 0; k + 1 < levels; ++k) {
    if (!IsSkip(c.up_blocks[k])) continue;
    if (c.out_channels != 3) options.Expect("out_channels", "3 with Skip blocks");
    if (!IsSkip(c.up_blocks[k + 1])) {
      options.Expect("up_block_types", "Skip blocks only after a Skip block");
    }
  }
}

void Check(Options& options, const Config& c) {
  const size_t levels = c.block_out_channels.size();
  if (c.down_blocks.size() != levels || c.up_blocks.size() != levels) {
    return options.Fail(
        "block_out_channels",
        absl::StrCat(" has ", levels, " levels, down_block_types ", c.down_blocks.size(),
                     ", up_block_types ", c.up_blocks.size(), "; expected as many of each"));
  }
  const auto plain = [](BlockKind kind) { return !IsSkip(kind); };
  if (!c.norm_num_groups && (std::any_of(c.down_blocks.begin(), c.down_blocks.end(), plain) ||
                             std::any_of(c.up_blocks.begin(), c.up_blocks.end(), plain))) {
    options.Expect("norm_num_groups", "a number, since not all blocks are Skip blocks");
  }
  CheckSkips(options, c);
  const std::int64_t first = c.block_out_channels.front();
  if (c.time_embedding == TimeEmbedding::kPositional) {
    const std::int64_t half = first / 2;
    if (half == 0) options.Expect("block_out_channels", "2 or more first, for sine and cosine");
    if (static_cast<double>(half) == c.freq_shift) {
      options.Expect("freq_shift",
                     absl::StrCat("another number than half of block_out_channels[0], ", half,
                                  ", which it would divide by 0"));
    }
  }
}

}  // namespace

std::string BlockName(BlockKind kind, bool up) {
  switch (kind) {
    case BlockKind::kPlain:
      return up ? "UpBlock2D" : "DownBlock2D";
    case BlockKind::kAttention:
      return up ? "AttnUpBlock2D" : "AttnDownBlock2D";
    case BlockKind::kResnet:
      return up ? "ResnetUpsampleBlock2D" : "ResnetDownsampleBlock2D";
    case BlockKind::kSkip:
      return up ? "SkipUpBlock2D" : "SkipDownBlock2D";
    case BlockKind::kAttentionSkip:
      return up ? "AttnSkipUpBlock2D" : "AttnSkipDownBlock2D";
  }
  return "";
}

absl::StatusOr<Config> ParseConfig(const nlohmann::json& json, const std::string& path) {
  if (!json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is ", json.type_name(), ", expected an object of options"));
  }
  if (const auto name = json.find("_class_name"); name != json.end() && *name != kClass) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": _class_name is ", name->dump(), ", expected ", kClass));
  }
  Config c;
  c.down_blocks = {BlockKind::kPlain, BlockKind::kAttention, BlockKind::kAttention,
                   BlockKind::kAttention};
  c.up_blocks = {BlockKind::kAttention, BlockKind::kAttention, BlockKind::kAttention,
                 BlockKind::kPlain};
  c.block_out_channels = {224, 448, 672, 896};
  Options options(json, path);
  TakeOptions(options, c);
  MP_RETURN_IF_ERROR(options.Finish(kClass));
  Check(options, c);
  MP_RETURN_IF_ERROR(options.Finish(kClass));
  if (c.time_embedding_dim == 0) c.time_embedding_dim = 4 * c.block_out_channels[0];
  c.source = json;
  return c;
}

absl::StatusOr<Config> ParseConfigText(std::string_view text, const std::string& path) {
  MP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, path));
  return ParseConfig(json, path);
}

std::string ConfigText(const nlohmann::json& source) {
  return source.dump(2, ' ', /*ensure_ascii=*/true) + "\n";
}

}  // namespace mergeplan::unet
