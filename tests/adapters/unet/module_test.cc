// What every network::Module promises, for a UNet2d.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/adapters/unet/support.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;
using testing::MakeUNet;
using testing::Relative;
using testing::SmallConfig;

at::Tensor Input(std::int64_t batch = 3, std::int64_t size = 8) {
  return at::linspace(-2, 2, batch * 2 * size * size, at::kFloat)
      .view({batch, 2, size, size})
      .sin();
}
at::Tensor Times(std::int64_t batch = 3) { return at::arange(batch, at::kLong) * 7 + 1; }

std::string ErrorOf(unet::UNet2d& net, const at::Tensor& z, const at::Tensor& time,
                    const at::Tensor& label = {}) {
  const auto out = net.Forward(z, time, label);
  return out.ok() ? "fine" : std::string(out.status().message());
}

bool SameValues(const network::Module& a, const network::Module& b) {
  const auto left = a.Parameters(), right = b.Parameters();
  if (left.size() != right.size()) return false;
  for (size_t k = 0; k < left.size(); ++k) {
    if (left[k].first != right[k].first || !at::equal(left[k].second, right[k].second))
      return false;
  }
  return true;
}

TEST(UNetModule, TheSeedSaysWhatTheWeightsAre) {
  const auto a = MakeUNet(SmallConfig(), 1), b = MakeUNet(SmallConfig(), 1),
             c = MakeUNet(SmallConfig(), 2);
  EXPECT_TRUE(SameValues(*a, *b));
  EXPECT_FALSE(SameValues(*a, *c));
  const at::Tensor out = a->Forward(Input(), Times(), {}).value();
  EXPECT_TRUE(at::isfinite(out).all().item<bool>());
  EXPECT_GT(out.std().item<double>(), 1e-3);
}

TEST(UNetModule, ParametersAreLeavesThatStay) {
  const auto net = MakeUNet(SmallConfig());
  const auto before = net->Parameters();
  for (const auto& [name, tensor] : before) {
    EXPECT_TRUE(tensor.is_leaf() && tensor.requires_grad()) << name;
  }
  ASSERT_TRUE(net->To(at::kCPU, at::kDouble).ok());
  const auto after = net->Parameters();
  for (size_t k = 0; k < before.size(); ++k) {
    EXPECT_TRUE(before[k].second.is_same(after[k].second));
    EXPECT_EQ(before[k].second.scalar_type(), at::kDouble);
    EXPECT_TRUE(before[k].second.is_leaf() && before[k].second.requires_grad());
  }
  EXPECT_FALSE(net->To(at::kCPU, at::kLong).ok());
}

TEST(UNetModule, ACloneIsItsOwn) {
  const auto net = MakeUNet(SmallConfig());
  net->Parameters()[3].second.set_requires_grad(false);
  const auto copy = net->Clone();
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_TRUE(SameValues(*net, **copy));
  EXPECT_FALSE((*copy)->Parameters()[3].second.requires_grad());
  EXPECT_TRUE((*copy)->Parameters()[4].second.requires_grad());
  const at::Tensor before = (*copy)->Forward(Input(), Times(), {}).value();
  EXPECT_TRUE(at::equal(before, net->Forward(Input(), Times(), {}).value()));
  {
    const c10::AutoGradMode no_gradients(false);
    for (const auto& [name, tensor] : net->Parameters()) tensor.detach().mul_(2);
  }
  EXPECT_TRUE(at::equal(before, (*copy)->Forward(Input(), Times(), {}).value()));
  EXPECT_FALSE(SameValues(*net, **copy));
}

TEST(UNetModule, SamplesDoNotSeeEachOtherAndSizesAreFree) {
  const auto net = MakeUNet(SmallConfig());
  const c10::AutoGradMode no_gradients(false);
  const at::Tensor all = net->Forward(Input(), Times(), {}).value();
  for (int k = 0; k < 3; ++k) {
    const at::Tensor one =
        net->Forward(Input().slice(0, k, k + 1), Times().slice(0, k, k + 1), {}).value();
    EXPECT_LT(Relative(one, all.slice(0, k, k + 1)), 1e-5);
  }
  const at::Tensor wide = at::ones({1, 2, 4, 22});
  EXPECT_EQ(net->Forward(wide, Times(1), {}).value().sizes(), wide.sizes());
  EXPECT_EQ(net->Forward(at::ones({1, 2, 2, 2}), Times(1), {}).value().size(2), 2);
}

// In-place operations are used where no gradient is asked for.
TEST(UNetModule, TheInputIsKeptAndGradientsOnOrOffGiveTheSame) {
  const auto net = MakeUNet(SmallConfig());
  const at::Tensor z = Input(), kept = z.clone();
  const at::Tensor with = net->Forward(z, Times(), {}).value();
  const c10::AutoGradMode no_gradients(false);
  EXPECT_TRUE(at::equal(with, net->Forward(z, Times(), {}).value()));
  EXPECT_TRUE(at::equal(z, kept));
}

TEST(UNetModule, WrongInputsAreErrors) {
  const auto net = MakeUNet(SmallConfig());
  EXPECT_THAT(ErrorOf(*net, {}, Times()), HasSubstr("z is missing"));
  EXPECT_THAT(
      ErrorOf(*net, at::ones({3, 1, 8, 8}), Times()),
      HasSubstr("z has shape [3, 1, 8, 8], expected [B, 2, H, W] with H and W multiples of 2"));
  EXPECT_THAT(ErrorOf(*net, at::ones({3, 2, 7, 8}), Times()), HasSubstr("[3, 2, 7, 8]"));
  EXPECT_THAT(ErrorOf(*net, at::ones({3, 2, 8}), Times()), HasSubstr("[3, 2, 8]"));
  EXPECT_THAT(ErrorOf(*net, at::ones({0, 2, 8, 8}), Times(0)), HasSubstr("[0, 2, 8, 8]"));
  EXPECT_THAT(ErrorOf(*net, Input().to(at::kDouble), Times()),
              HasSubstr("z is Double on cpu, the network is Float on cpu"));
  EXPECT_THAT(ErrorOf(*net, Input(), {}), HasSubstr("time is missing"));
  EXPECT_THAT(ErrorOf(*net, Input(), Times(2)), HasSubstr("time has shape [2], expected [3]"));
  EXPECT_THAT(ErrorOf(*net, Input(), at::full({3}, NAN)), HasSubstr("not finite"));
  EXPECT_THAT(ErrorOf(*net, Input(), Times(), Times()), HasSubstr("without class embedding"));
}

TEST(UNetModule, WrongTimesAndLabelsAreErrors) {
  nlohmann::json json = SmallConfig();
  json["num_class_embeds"] = 5;
  auto net = MakeUNet(json);
  EXPECT_THAT(ErrorOf(*net, Input(), Times()), HasSubstr("label is missing"));
  EXPECT_THAT(ErrorOf(*net, Input(), Times(), at::tensor({0, 5, 1}, at::kLong)),
              HasSubstr("label goes from 0 to 5, expected whole numbers from 0 to 4"));
  EXPECT_THAT(ErrorOf(*net, Input(), Times(), at::tensor({0, -1, 1}, at::kLong)), HasSubstr("-1"));
  EXPECT_THAT(ErrorOf(*net, Input(), Times(), at::zeros({3})), HasSubstr("expected whole numbers"));
  EXPECT_EQ(ErrorOf(*net, Input(), Times(), at::tensor({0, 4, 1}, at::kLong)), "fine");
  json["class_embed_type"] = "identity";
  net = MakeUNet(json);
  EXPECT_THAT(ErrorOf(*net, Input(), Times(), at::zeros({3, 8})), HasSubstr("expected [3, 32]"));
  json = SmallConfig();
  json["time_embedding_type"] = "learned";
  json["num_train_timesteps"] = 10;
  net = MakeUNet(json);
  EXPECT_THAT(ErrorOf(*net, Input(), at::tensor({0, 3, 10}, at::kLong)), HasSubstr("to 9"));
  EXPECT_THAT(ErrorOf(*net, Input(), at::tensor({0.0, 3.0, 2.5})), HasSubstr("whole numbers"));
  EXPECT_EQ(ErrorOf(*net, Input(), at::tensor({0.0, 3.0, 9.0})), "fine");
  json["time_embedding_type"] = "fourier";
  net = MakeUNet(json);
  EXPECT_THAT(ErrorOf(*net, Input(), at::tensor({0.0, 3.0, 2.5})), HasSubstr("not positive"));
  EXPECT_EQ(ErrorOf(*net, Input(), at::tensor({0.1, 3.0, 2.5})), "fine");
  EXPECT_EQ(net->Buffers().size(), 1U);
  EXPECT_FALSE(net->Buffers()[0].second.requires_grad());
}

TEST(UNetModule, DropoutIsOnInTrainingOnly) {
  nlohmann::json json = SmallConfig();
  json["dropout"] = 0.5;
  const auto net = MakeUNet(json);
  const at::Tensor still = net->Forward(Input(), Times(), {}).value();
  EXPECT_TRUE(at::equal(still, net->Forward(Input(), Times(), {}).value()));
  net->SetTraining(true);
  const at::Tensor one = net->Forward(Input(), Times(), {}).value();
  EXPECT_FALSE(at::equal(one, net->Forward(Input(), Times(), {}).value()));
  net->SetTraining(false);
  EXPECT_TRUE(at::equal(still, net->Forward(Input(), Times(), {}).value()));
}

// Recomputed blocks draw the same dropout again, and leave the generator where it would be.
TEST(UNetModule, CheckpointingGivesTheSameGradients) {
  for (const double dropout : {0.0, 0.4}) {
    nlohmann::json json = SmallConfig();
    json["dropout"] = dropout;
    const auto net = MakeUNet(json);
    net->SetTraining(true);
    const auto run = [&](bool checkpointing) {
      EXPECT_TRUE(net->SetGradientCheckpointing(checkpointing).ok());
      at::manual_seed(5);
      for (const auto& [name, tensor] : net->Parameters()) tensor.mutable_grad() = at::Tensor();
      const at::Tensor z = Input().set_requires_grad(true);
      const at::Tensor out = net->Forward(z, Times(), {}).value();
      out.square().sum().backward();
      std::vector<at::Tensor> found = {out.detach(), z.grad(), at::rand({3})};
      for (const auto& [name, tensor] : net->Parameters()) found.push_back(tensor.grad().clone());
      return found;
    };
    const auto plain = run(false), recomputed = run(true);
    for (size_t k = 0; k < plain.size(); ++k) {
      EXPECT_TRUE(at::allclose(plain[k], recomputed[k], 1e-5, 1e-5)) << k << " at " << dropout;
    }
  }
}

TEST(UNetModule, CheckpointingSkipsWhatIsFrozen) {
  const auto net = MakeUNet(SmallConfig());
  ASSERT_TRUE(net->SetGradientCheckpointing(true).ok());
  for (const auto& [name, tensor] : net->Parameters()) {
    tensor.set_requires_grad(name.rfind("up_blocks.1", 0) == 0);
  }
  net->Forward(Input(), Times(), {}).value().square().sum().backward();
  for (const auto& [name, tensor] : net->Parameters()) {
    EXPECT_EQ(tensor.grad().defined(), name.rfind("up_blocks.1", 0) == 0) << name;
  }
}

// Narrow networks stay near wide ones.
TEST(UNetModule, RunsInBfloat16) {
  const auto net = MakeUNet(SmallConfig());
  const c10::AutoGradMode no_gradients(false);
  const at::Tensor wide = net->Forward(Input(), Times(), {}).value();
  ASSERT_TRUE(net->To(at::kCPU, at::kBFloat16).ok());
  const at::Tensor narrow = net->Forward(Input().to(at::kBFloat16), Times(), {}).value();
  EXPECT_EQ(narrow.scalar_type(), at::kBFloat16);
  EXPECT_LT(Relative(narrow, wide), 0.05);
}

}  // namespace
}  // namespace mergeplan
