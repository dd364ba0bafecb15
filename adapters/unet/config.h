#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace mergeplan::unet {

enum class BlockKind {
  kPlain,          // DownBlock2D, UpBlock2D
  kAttention,      // AttnDownBlock2D, AttnUpBlock2D
  kResnet,         // ResnetDownsampleBlock2D, ResnetUpsampleBlock2D
  kSkip,           // SkipDownBlock2D, SkipUpBlock2D
  kAttentionSkip,  // AttnSkipDownBlock2D, AttnSkipUpBlock2D
};
inline bool IsSkip(BlockKind kind) {
  return kind == BlockKind::kSkip || kind == BlockKind::kAttentionSkip;
}
enum class TimeEmbedding { kPositional, kFourier, kLearned };
enum class ClassEmbedding {
  kNone,
  kTable,     // class_embed_type null with num_class_embeds: a row per label
  kTimestep,  // labels go where timesteps go
  kIdentity,  // labels are vectors of the time embedding's width
};
enum class Resampling { kConv, kResnet };

// The options of a diffusers UNet2DModel, with the class's own defaults, checked together.
struct Config {
  std::vector<std::int64_t> sample_size;  // height and width; empty where the file has none
  std::int64_t in_channels = 3;
  std::int64_t out_channels = 3;
  bool center_input_sample = false;
  TimeEmbedding time_embedding = TimeEmbedding::kPositional;
  std::int64_t time_embedding_dim = 0;  // 4 block_out_channels[0] unless the file says otherwise
  double freq_shift = 0;
  bool flip_sin_to_cos = true;
  std::vector<BlockKind> down_blocks, up_blocks;
  bool mid_block = true;
  std::vector<std::int64_t> block_out_channels;
  std::int64_t layers_per_block = 2;
  double mid_block_scale_factor = 1;
  std::int64_t downsample_padding = 1;
  Resampling downsample = Resampling::kConv, upsample = Resampling::kConv;
  double dropout = 0;
  std::string activation = "silu";                     // silu, mish, gelu or relu
  std::optional<std::int64_t> attention_head_dim = 8;  // without: one head of all channels
  std::optional<std::int64_t> norm_num_groups = 32;
  std::optional<std::int64_t> attn_norm_num_groups;
  double norm_eps = 1e-5;
  bool time_scale_shift = false;
  bool add_attention = true;
  ClassEmbedding class_embedding = ClassEmbedding::kNone;
  std::int64_t num_class_embeds = 0;
  std::int64_t num_train_timesteps = 0;

  // The file as it was, to be written again.
  nlohmann::json source;

  std::int64_t levels() const { return static_cast<std::int64_t>(block_out_channels.size()); }
  // Height and width must be multiples of this.
  std::int64_t size_multiple() const { return std::int64_t{1} << (levels() - 1); }
  // What comes out of the projection of a timestep.
  std::int64_t time_inputs() const {
    return block_out_channels[0] * (time_embedding == TimeEmbedding::kFourier ? 2 : 1);
  }
};

// Names as the file has them.
std::string BlockName(BlockKind kind, bool up);

// Reads the text of a config.json. INVALID_ARGUMENT names `path` and the key: one that the class
// does not have (keys that begin with "_" are kept and otherwise ignored), a value of another type
// or out of range, and what cannot be together, such as blocks whose skips do not meet. (That
// groups divide their channels is found when the network is made.) Of words it says which there
// are.
absl::StatusOr<Config> ParseConfigText(std::string_view text, const std::string& path);
// From a JSON object, for networks that are made here.
absl::StatusOr<Config> ParseConfig(const nlohmann::json& json, const std::string& path);

// As diffusers writes it: sorted keys, two blanks a level.
std::string ConfigText(const nlohmann::json& source);

}  // namespace mergeplan::unet
