#pragma once

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "adapters/unet/unet.h"
#include "nlohmann/json.hpp"
#include "planner/base/file.h"

namespace mergeplan::testing {

// A folder of the reference data that is handed around with the project, or empty where it is not.
inline std::string SharedDiffusers(const std::string& name) {
  const char* set = std::getenv("MERGEPLAN_SHARED");
  const char* source = std::getenv("MERGEPLAN_SOURCE_DIR");
  const std::string root =
      set != nullptr ? set : std::string(source != nullptr ? source : ".") + "/../shared";
  const std::string path = root + "/reference/diffusers/" + name;
  return std::filesystem::exists(path) ? path : "";
}
#define SKIP_WITHOUT_DIFFUSERS(path, name)                                      \
  if ((path).empty()) {                                                         \
    GTEST_SKIP() << "reference data missing: diffusers/" << (name)              \
                 << "; set MERGEPLAN_SHARED to the folder that has reference/"; \
  }                                                                             \
  static_assert(true)

// Two levels, attention, 8 x 8.
inline nlohmann::json SmallConfig() {
  return {{"_class_name", "UNet2DModel"},
          {"_diffusers_version", "0.42.1"},
          {"sample_size", 8},
          {"in_channels", 2},
          {"out_channels", 2},
          {"layers_per_block", 1},
          {"block_out_channels", {8, 12}},
          {"down_block_types", {"DownBlock2D", "AttnDownBlock2D"}},
          {"up_block_types", {"AttnUpBlock2D", "UpBlock2D"}},
          {"attention_head_dim", 4},
          {"norm_num_groups", 4}};
}

inline std::unique_ptr<unet::UNet2d> MakeUNet(const nlohmann::json& json, std::uint64_t seed = 1) {
  const auto config = unet::ParseConfig(json, "config.json");
  EXPECT_TRUE(config.ok()) << config.status();
  if (!config.ok()) return nullptr;
  auto net = unet::UNet2d::Create(*config, seed);
  EXPECT_TRUE(net.ok()) << net.status();
  return net.ok() ? *std::move(net) : nullptr;
}

inline double Relative(const at::Tensor& found, const at::Tensor& expected) {
  EXPECT_EQ(found.sizes(), expected.sizes());
  const at::Tensor a = found.detach().to(at::kDouble), b = expected.detach().to(at::kDouble);
  return (a - b).abs().max().item<double>() / b.abs().max().item<double>();
}

}  // namespace mergeplan::testing
