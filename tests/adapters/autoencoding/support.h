#pragma once

#include <nlohmann/json.hpp>

namespace mergeplan::autoencoding {

// A small AutoencoderKL: grey pictures, latents of 2 channels and half the sides.
inline nlohmann::json SmallVaeConfig() {
  return {{"_class_name", "AutoencoderKL"},
          {"in_channels", 1},
          {"out_channels", 1},
          {"latent_channels", 2},
          {"down_block_types", {"DownEncoderBlock2D", "DownEncoderBlock2D"}},
          {"up_block_types", {"UpDecoderBlock2D", "UpDecoderBlock2D"}},
          {"block_out_channels", {4, 8}},
          {"norm_num_groups", 2},
          {"layers_per_block", 1},
          {"scaling_factor", 1.0}};
}

}  // namespace mergeplan::autoencoding
