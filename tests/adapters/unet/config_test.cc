#include "adapters/unet/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/adapters/unet/support.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::SmallConfig;

std::string ErrorOf(const std::string& key, const nlohmann::json& value,
                    nlohmann::json json = SmallConfig()) {
  json[key] = value;
  const auto config = unet::ParseConfig(json, "dir/config.json");
  if (!config.ok()) return std::string(config.status().message());
  const auto net = unet::UNet2d::Create(*config, 0, "dir/config.json");
  return net.ok() ? "fine" : std::string(net.status().message());
}

TEST(UNetConfig, DefaultsAreThoseOfTheClass) {
  const auto c = unet::ParseConfig(nlohmann::json::object(), "c");
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->block_out_channels, (std::vector<std::int64_t>{224, 448, 672, 896}));
  EXPECT_EQ(c->time_embedding_dim, 896);
  EXPECT_EQ(c->size_multiple(), 8);
  EXPECT_EQ(c->attention_head_dim, 8);
  EXPECT_EQ(c->norm_num_groups, 32);
  EXPECT_TRUE(c->sample_size.empty());
}

TEST(UNetConfig, WhatWeDoNotHaveIsNamedWithWhatWeHave) {
  EXPECT_THAT(ErrorOf("encoder_hid_dim", 3),
              AllOf(HasSubstr("dir/config.json: encoder_hid_dim is no option of UNet2DModel"),
                    HasSubstr("act_fn"), HasSubstr("upsample_type")));
  EXPECT_THAT(ErrorOf("_class_name", "UNet2DConditionModel"),
              HasSubstr("_class_name is \"UNet2DConditionModel\", expected UNet2DModel"));
  EXPECT_THAT(ErrorOf("down_block_types", {"DownBlock2D", "KDownBlock2D"}),
              AllOf(HasSubstr("down_block_types is \"KDownBlock2D\""),
                    HasSubstr("ResnetDownsampleBlock2D"), HasSubstr("AttnSkipDownBlock2D")));
  EXPECT_THAT(ErrorOf("up_block_types", {"UpBlock2D", "DownBlock2D"}),
              HasSubstr("AttnSkipUpBlock2D"));
  EXPECT_THAT(ErrorOf("mid_block_type", "UNetMidBlock2DCrossAttn"),
              HasSubstr("expected UNetMidBlock2D"));
  EXPECT_THAT(ErrorOf("time_embedding_type", "rotary"),
              HasSubstr("expected positional, fourier or learned"));
  EXPECT_THAT(ErrorOf("class_embed_type", "projection"),
              HasSubstr("expected timestep or identity"));
  EXPECT_THAT(ErrorOf("resnet_time_scale_shift", "spatial"),
              HasSubstr("expected default or scale_shift"));
  EXPECT_THAT(ErrorOf("act_fn", "tanh"), HasSubstr("expected silu, swish, mish, gelu or relu"));
  EXPECT_THAT(ErrorOf("downsample_type", "pool"), HasSubstr("expected conv or resnet"));
  EXPECT_THAT(ErrorOf("upsample_type", 3), HasSubstr("upsample_type is 3"));
}

TEST(UNetConfig, ValuesOfAnotherTypeOrRangeAreErrors) {
  const nlohmann::json odd[] = {nullptr, "x", -1, 0, 1.5, 1e300, {1, 2}, nlohmann::json::object()};
  for (const char* key : {"in_channels", "out_channels", "layers_per_block", "downsample_padding",
                          "block_out_channels", "down_block_types", "up_block_types"}) {
    for (const nlohmann::json& value : odd) {
      if (value == 0 && key == std::string("downsample_padding")) continue;
      EXPECT_THAT(ErrorOf(key, value), HasSubstr(key)) << value;
    }
  }
  for (const char* key : {"norm_eps", "mid_block_scale_factor"}) {
    for (const nlohmann::json& value : odd) {
      if (value.is_number() && value > 0 && value < 10) continue;
      EXPECT_THAT(ErrorOf(key, value), HasSubstr(key)) << value;
    }
  }
  for (const char* key : {"add_attention", "flip_sin_to_cos", "center_input_sample"}) {
    for (const nlohmann::json& value : odd)
      EXPECT_THAT(ErrorOf(key, value), HasSubstr(key)) << value;
  }
  EXPECT_THAT(ErrorOf("dropout", 1.5), HasSubstr("dropout is 1.5, expected a number from 0 to 1"));
  EXPECT_THAT(ErrorOf("attention_head_dim", 0), HasSubstr("attention_head_dim is 0"));
  EXPECT_THAT(ErrorOf("sample_size", {8, 8, 8}), HasSubstr("sample_size"));
  EXPECT_THAT(ErrorOf("downsample_padding", 2), HasSubstr("from 0 to 1"));
}

TEST(UNetConfig, WhatCannotBeTogetherIsAnError) {
  EXPECT_THAT(
      ErrorOf("norm_num_groups", 5),
      HasSubstr("down_blocks.0.resnets.0.norm1 has 8 channels, which 5 groups do not divide"));
  EXPECT_THAT(ErrorOf("attn_norm_num_groups", 5), HasSubstr("mid_block.attentions.0.group_norm"));
  EXPECT_THAT(ErrorOf("attention_head_dim", 16), HasSubstr("less than a head's 16"));
  EXPECT_THAT(ErrorOf("norm_num_groups", nullptr), HasSubstr("norm_num_groups is null"));
  EXPECT_THAT(ErrorOf("block_out_channels", {8}), HasSubstr("has 1 levels, down_block_types 2"));
  EXPECT_THAT(ErrorOf("time_embedding_type", "learned"), HasSubstr("num_train_timesteps"));
  EXPECT_THAT(ErrorOf("freq_shift", 4), HasSubstr("divide by 0"));
  EXPECT_THAT(ErrorOf("down_block_types", {"SkipDownBlock2D", "DownBlock2D"}),
              HasSubstr("in_channels is 2, expected 3"));
  nlohmann::json three = SmallConfig();
  three["in_channels"] = three["out_channels"] = 3;
  three["block_out_channels"] = {8, 8, 12};
  three["up_block_types"] = {"UpBlock2D", "UpBlock2D", "UpBlock2D"};
  EXPECT_THAT(ErrorOf("down_block_types", {"DownBlock2D", "SkipDownBlock2D", "DownBlock2D"}, three),
              HasSubstr("Skip blocks only before"));
  three["down_block_types"] = {"DownBlock2D", "DownBlock2D", "DownBlock2D"};
  EXPECT_THAT(ErrorOf("up_block_types", {"SkipUpBlock2D", "UpBlock2D", "UpBlock2D"}, three),
              HasSubstr("Skip blocks only after"));
}

TEST(UNetConfig, TextThatIsNoConfigIsAnError) {
  for (const char* text : {"", "[]", "3", "{", "{\"in_channels\": NaN}", "null"}) {
    const auto config = unet::ParseConfigText(text, "dir/config.json");
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_THAT(std::string(config.status().message()), HasSubstr("dir/config.json"));
  }
}

// As Python's json.dumps(indent=2, sort_keys=True) writes them.
TEST(UNetConfig, TheTextIsThatOfDiffusers) {
  const std::string root = testing::SharedDiffusers("unets");
  SKIP_WITHOUT_DIFFUSERS(root, "unets");
  for (const char* name : {"plain", "attn", "ddpm-like", "class-cond"}) {
    const std::string path = root + "/" + name + "/config.json";
    const std::string text = ReadFile(path).value();
    const auto config = unet::ParseConfigText(text, path);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(unet::ConfigText(config->source), text) << name;
  }
}

}  // namespace
}  // namespace mergeplan
