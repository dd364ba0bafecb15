// Autoencoders against diffusers: the reference data, and every option by formula (golden.py).
#include "adapters/vae_latent/autoencoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "adapters/model/npz_tensors.h"
#include "tests/adapters/support.h"
#include "tests/adapters/unet/formula.h"
#include "tests/adapters/unet/support.h"

namespace mergeplan {
namespace {

using model::NpzTensors;
using ::testing::AllOf;
using testing::ExpectClose;
using ::testing::HasSubstr;
using testing::Relative;
using testing::SharedDiffusers;

nlohmann::json Small() {
  return {{"_class_name", "AutoencoderKL"},
          {"block_out_channels", {4, 8}},
          {"norm_num_groups", 2},
          {"down_block_types", {"DownEncoderBlock2D", "DownEncoderBlock2D"}},
          {"up_block_types", {"UpDecoderBlock2D", "UpDecoderBlock2D"}}};
}

std::unique_ptr<vae::Autoencoder> Make(const nlohmann::json& json) {
  const auto config = vae::ParseConfig(json, "config.json");
  EXPECT_TRUE(config.ok()) << config.status();
  auto net = vae::Autoencoder::Create(*config, 1);
  EXPECT_TRUE(net.ok()) << net.status();
  return *std::move(net);
}

TEST(Autoencoder, IsThatOfTheReference) {
  const std::string root = SharedDiffusers("vaes");
  SKIP_WITHOUT_DIFFUSERS(root, "vaes");
  for (const std::string name : {"kl", "kl-nomid-shift", "tiny"}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      SCOPED_TRACE(name + (dtype == at::kDouble ? " in float64" : " in float32"));
      const auto net = vae::Autoencoder::Load(root + "/" + name, {dtype, at::kCPU});
      ASSERT_TRUE(net.ok()) << net.status();
      const NpzTensors npz = NpzTensors::Open(root + "/" + name + "/io.npz").value();
      const std::string suffix = dtype == at::kDouble ? "_f64" : "";
      const double tight = dtype == at::kDouble ? 1e-13 : 1e-5;
      const auto read = [&](const std::string& key) { return npz.Read(key, dtype).value(); };
      const vae::Encoded encoded = (*net)->Encode(read("image")).value();
      const bool tiny = (*net)->config().tiny;
      EXPECT_LT(Relative(encoded.mean, read((tiny ? "latents" : "mean") + suffix)), tight);
      if (!tiny) {
        EXPECT_LT(Relative(encoded.log_variance, read("logvar" + suffix)), tight);
        EXPECT_LT(Relative((*net)->Scale(encoded.mean), read("scaled" + suffix)), tight);
        EXPECT_LT(Relative((*net)->Unscale((*net)->Scale(encoded.mean)), encoded.mean), 1e-5);
        const at::Tensor sampled = encoded.mean + (encoded.log_variance / 2).exp() * read("noise");
        EXPECT_LT(Relative(sampled, read("sampled" + suffix)), tight);
      }
      const at::Tensor decoded = (*net)->Decode(encoded.mean).value();
      EXPECT_LT(Relative(decoded, read("decoded" + suffix)), tight);
      decoded.square().sum().backward();
      std::map<std::string, at::Tensor> parameters;
      for (const auto& [key, tensor] : (*net)->Parameters()) parameters.emplace(key, tensor);
      const std::vector<std::string> watched = npz.Names("grad_names").value();
      for (size_t k = 0; k < watched.size(); ++k) {
        // The reference's own float32 gradients are off by up to 5e-6.
        EXPECT_LT(Relative(parameters.at(watched[k]).grad(),
                           npz.Read("grad_" + std::to_string(k) + "_f64", at::kDouble).value()),
                  tight)
            << watched[k];
      }
    }
  }
}

TEST(Autoencoder, EveryOptionIsThatOfDiffusers) {
  const char* source = std::getenv("MERGEPLAN_SOURCE_DIR");
  const auto text = ReadFile(std::string(source != nullptr ? source : ".") +
                             "/tests/adapters/vae_latent/golden.json");
  ASSERT_TRUE(text.ok()) << text.status();
  const nlohmann::json cases = nlohmann::json::parse(*text);
  ASSERT_GE(cases.size(), 8U);
  for (const nlohmann::json& c : cases) {
    SCOPED_TRACE(c["name"].get<std::string>());
    const auto net = Make(c["config"]);
    ASSERT_TRUE(net->To(at::kCPU, at::kDouble).ok());
    for (const auto& [name, tensor] : net->Parameters()) testing::Fill(name, tensor.detach());
    EXPECT_EQ(net->Parameters().back().first, c["last_parameter"]);
    const at::Tensor image = testing::Wave({2, 2, 9, 8}, 0.7, 0.3).set_requires_grad(true);
    const vae::Encoded encoded = net->Encode(image).value();
    ExpectClose(encoded.mean.detach().flatten().contiguous(), c["mean"], 1e-8);
    if (!net->config().tiny) {
      ExpectClose(encoded.log_variance.detach().flatten().contiguous(), c["log_variance"], 1e-8);
    }
    const at::Tensor decoded = net->Decode(encoded.mean).value();
    ExpectClose(decoded.detach().flatten().slice(0, 0, {}, 4).contiguous(), c["decoded"], 1e-8);
    decoded.square().sum().backward();
    ExpectClose(image.grad().flatten().slice(0, 0, {}, 4).contiguous(), c["input_gradient"], 1e-8);
    const std::vector<double> norms = c["gradient_norms"];
    ASSERT_EQ(net->Parameters().size(), norms.size());
    const double largest = *std::max_element(norms.begin(), norms.end());
    for (size_t k = 0; k < norms.size(); ++k) {
      const auto [name, tensor] = net->Parameters()[k];
      EXPECT_NEAR(tensor.grad().norm().item<double>(), norms[k], 1e-8 * largest) << name;
    }
  }
}

TEST(Autoencoder, FoldersComeOutByteForByte) {
  const std::string root = SharedDiffusers("vaes");
  SKIP_WITHOUT_DIFFUSERS(root, "vaes");
  const testing::TemporaryFolder temporary;
  for (const std::string name : {"kl", "kl-nomid-shift", "tiny"}) {
    const auto net = vae::Autoencoder::Load(root + "/" + name);
    ASSERT_TRUE(net.ok()) << net.status();
    ASSERT_TRUE((*net)->Save(temporary.File(name)).ok());
    for (const char* file : {"/config.json", "/diffusion_pytorch_model.safetensors"}) {
      EXPECT_EQ(Sha256OfFile(temporary.File(name) + file).value(),
                Sha256OfFile(root + "/" + name + file).value())
          << name << file;
    }
  }
}

TEST(Autoencoder, ScalesPerChannel) {
  nlohmann::json json = Small();
  json["latents_mean"] = {1, 2, 3, 4};
  json["latents_std"] = {2, 2, 4, 4};
  json["scaling_factor"] = 0.5;
  json["shift_factor"] = 7;  // the lists go before it
  const auto net = Make(json);
  const at::Tensor z = at::full({1, 4, 2, 2}, 5.0, at::kDouble);
  const at::Tensor scaled = net->Scale(z);
  const double expected[] = {1, 0.75, 0.25, 0.125};
  for (int k = 0; k < 4; ++k) EXPECT_EQ(scaled[0][k][1][1].item<double>(), expected[k]);
  EXPECT_TRUE(at::equal(net->Unscale(scaled), z));
}

TEST(Autoencoder, WrongInputsAreErrors) {
  const auto net = Make(Small());
  const auto encode = [&](const at::Tensor& x) {
    const auto out = net->Encode(x);
    return out.ok() ? std::string("fine") : std::string(out.status().message());
  };
  EXPECT_EQ(encode(at::zeros({1, 3, 2, 2})), "fine");
  EXPECT_THAT(encode({}), HasSubstr("image is missing"));
  EXPECT_THAT(
      encode(at::zeros({1, 3, 1, 8})),
      HasSubstr("image has shape [1, 3, 1, 8], expected [B, 3, H, W] with H and W from 2 on"));
  EXPECT_THAT(encode(at::zeros({1, 1, 8, 8})), HasSubstr("[1, 1, 8, 8]"));
  EXPECT_THAT(encode(at::zeros({0, 3, 8, 8})), HasSubstr("[0, 3, 8, 8]"));
  EXPECT_THAT(encode(at::zeros({1, 3, 8, 8}, at::kDouble)), HasSubstr("the network is Float"));
  EXPECT_THAT(std::string(net->Decode(at::zeros({1, 3, 8, 8})).status().message()),
              HasSubstr("latent has shape [1, 3, 8, 8], expected [B, 4, H, W]"));
  EXPECT_FALSE(net->To(at::kCPU, at::kInt).ok());
}

TEST(Autoencoder, WhatWeDoNotHaveIsNamedWithWhatWeHave) {
  const auto error = [](const std::string& key, const nlohmann::json& value,
                        nlohmann::json json = Small()) {
    json[key] = value;
    const auto config = vae::ParseConfig(json, "dir/config.json");
    if (!config.ok()) return std::string(config.status().message());
    const auto net = vae::Autoencoder::Create(*config, 0, "dir/config.json");
    return net.ok() ? std::string("fine") : std::string(net.status().message());
  };
  EXPECT_THAT(error("_class_name", "VQModel"),
              HasSubstr("expected AutoencoderKL or AutoencoderTiny"));
  EXPECT_THAT(
      error("use_tiling", true),
      AllOf(HasSubstr("use_tiling is no option of AutoencoderKL"), HasSubstr("use_quant_conv")));
  EXPECT_THAT(error("down_block_types", {"DownEncoderBlock2D", "DownBlock2D"}),
              HasSubstr("expected DownEncoderBlock2D or AttnDownEncoderBlock2D"));
  EXPECT_THAT(
      error("norm_num_groups", 3),
      HasSubstr("encoder.down_blocks.0.resnets.0.norm1 has 4 channels, which 3 groups do not"));
  EXPECT_THAT(error("block_out_channels", {4}), HasSubstr("has 1 levels, down_block_types 2"));
  EXPECT_THAT(error("latents_mean", {1, 2, 3, 4}), HasSubstr("latents_std"));
  EXPECT_THAT(error("latents_std", {1, 2, 3, 0}), HasSubstr("list of 4 positive numbers"));
  EXPECT_THAT(error("scaling_factor", 0), HasSubstr("scaling_factor is 0"));
  EXPECT_EQ(error("shift_factor", nullptr), "fine");
  const nlohmann::json tiny = {{"_class_name", "AutoencoderTiny"}};
  EXPECT_THAT(error("upsample_fn", "bilinear", tiny), HasSubstr("expected nearest"));
  EXPECT_THAT(error("num_encoder_blocks", {1, 2}, tiny),
              HasSubstr("has 4 stages, num_encoder_blocks 2"));
  EXPECT_THAT(error("encoder_block_out_channels", {64, 64, 32, 64}, tiny),
              HasSubstr("the same number for all stages"));
  EXPECT_THAT(error("norm_num_groups", 4, tiny), HasSubstr("is no option of AutoencoderTiny"));
}

}  // namespace
}  // namespace mergeplan
