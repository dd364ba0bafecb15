#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace mergeplan::vae {

// The options of a diffusers AutoencoderKL or AutoencoderTiny, with the class's own defaults.
struct Config {
  bool tiny = false;
  std::int64_t in_channels = 3, out_channels = 3, latent_channels = 4;
  std::string activation = "silu";  // silu, mish, gelu or relu; AutoencoderTiny: relu

  // AutoencoderKL
  std::vector<std::int64_t> block_out_channels = {64};
  std::vector<bool> down_attention = {false}, up_attention = {false};  // Attn… blocks
  std::int64_t layers_per_block = 1;
  std::int64_t norm_num_groups = 32;
  bool quant_conv = true, post_quant_conv = true, mid_attention = true;
  std::vector<double> latents_mean, latents_std;  // per channel, or empty

  // AutoencoderTiny: one width each, since a stage takes what the one before it gives.
  std::int64_t encoder_width = 64, decoder_width = 64;
  std::vector<std::int64_t> encoder_blocks = {1, 3, 3, 3}, decoder_blocks = {3, 3, 3, 1};
  std::int64_t upsampling = 2;

  // What a denoiser sees is (z - shift) * scale (per channel with latents_mean and latents_std).
  double scaling_factor = 0.18215, shift_factor = 0;

  nlohmann::json source;  // the file as it was

  std::string class_name() const { return tiny ? "AutoencoderTiny" : "AutoencoderKL"; }
  // By how much the encoder lessens height and width.
  std::int64_t reduction() const;
};

// Errors as of unet::ParseConfigText.
absl::StatusOr<Config> ParseConfig(const nlohmann::json& json, const std::string& path);
absl::StatusOr<Config> ParseConfigText(std::string_view text, const std::string& path);

}  // namespace mergeplan::vae
