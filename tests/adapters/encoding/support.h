#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "adapters/vae_latent/autoencoder.h"

namespace mergeplan::encoding {

// A small AutoencoderKL with random weights in a folder: pictures of three channels, latents of two
// and half the sides, scaled and shifted.
inline void SaveSmallVae(const std::string& folder, std::uint64_t seed) {
  const nlohmann::json json = {{"_class_name", "AutoencoderKL"},
                               {"block_out_channels", {4, 8}},
                               {"norm_num_groups", 2},
                               {"latent_channels", 2},
                               {"scaling_factor", 0.25},
                               {"shift_factor", 0.5},
                               {"down_block_types", {"DownEncoderBlock2D", "DownEncoderBlock2D"}},
                               {"up_block_types", {"UpDecoderBlock2D", "UpDecoderBlock2D"}}};
  const auto net = vae::Autoencoder::Create(*vae::ParseConfig(json, "config.json"), seed);
  ASSERT_TRUE(net.ok()) << net.status();
  ASSERT_TRUE((*net)->Save(folder).ok());
}

}  // namespace mergeplan::encoding
