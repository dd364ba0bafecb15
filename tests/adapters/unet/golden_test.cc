// Every option of UNet2DModel against what diffusers computes (golden.py), on any machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/adapters/unet/formula.h"
#include "tests/adapters/unet/support.h"

namespace mergeplan {
namespace {

using testing::ExpectClose;
using testing::Fill;
using testing::MakeUNet;
using testing::Wave;

nlohmann::json ReadGolden() {
  const char* source = std::getenv("MERGEPLAN_SOURCE_DIR");
  const auto text =
      ReadFile(std::string(source != nullptr ? source : ".") + "/tests/adapters/unet/golden.json");
  EXPECT_TRUE(text.ok()) << text.status();
  return nlohmann::json::parse(text.value_or("[]"));
}

class Golden : public ::testing::TestWithParam<bool> {};

TEST_P(Golden, OutputsAndGradientsAreThoseOfDiffusers) {
  const nlohmann::json cases = ReadGolden();
  ASSERT_GE(cases.size(), 20U);
  for (const nlohmann::json& c : cases) {
    SCOPED_TRACE(c["name"].get<std::string>());
    const auto net = MakeUNet(c["config"]);
    ASSERT_NE(net, nullptr);
    ASSERT_TRUE(net->To(at::kCPU, at::kDouble).ok());
    ASSERT_TRUE(net->SetGradientCheckpointing(GetParam()).ok());
    for (const auto& [name, tensor] : net->Parameters()) Fill(name, tensor.detach());
    for (const auto& [name, tensor] : net->Buffers()) Fill(name, tensor);
    EXPECT_EQ(net->Parameters().back().first, c["last_parameter"]);
    const unet::Config& config = net->config();
    const at::Tensor z = Wave({2, config.in_channels, 8, 8}, 0.7, 0.3).set_requires_grad(true);
    at::Tensor label;
    if (config.class_embedding == unet::ClassEmbedding::kIdentity) {
      label = Wave({2, config.time_embedding_dim}, 0.4, std::acos(-1.0) / 2);
    } else if (config.class_embedding != unet::ClassEmbedding::kNone) {
      label = at::tensor({4, 1}, at::kLong);
    }
    const auto out = net->Forward(z, at::tensor({3, 20}, at::kLong), label);
    ASSERT_TRUE(out.ok()) << out.status();
    out->square().sum().backward();
    // The sinusoids are float32, whose last digit is the machine's.
    const double tolerance = 1e-6;
    ExpectClose(out->detach().flatten().slice(0, 0, {}, 4).contiguous(), c["output"], tolerance);
    ExpectClose(z.grad().flatten().slice(0, 0, {}, 16).contiguous(), c["input_gradient"],
                tolerance);
    const std::vector<double> norms = c["gradient_norms"];
    ASSERT_EQ(net->Parameters().size(), norms.size());
    const double largest = *std::max_element(norms.begin(), norms.end());
    for (size_t k = 0; k < norms.size(); ++k) {
      const auto [name, tensor] = net->Parameters()[k];
      ASSERT_TRUE(tensor.grad().defined()) << name;
      EXPECT_NEAR(tensor.grad().norm().item<double>(), norms[k], tolerance * largest) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpointing, Golden, ::testing::Bool());

}  // namespace
}  // namespace mergeplan
