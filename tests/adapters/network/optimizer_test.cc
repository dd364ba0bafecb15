#include "adapters/network/optimizer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "adapters/network/precision.h"

namespace mergeplan::network {
namespace {

using ::testing::HasSubstr;

using Texts = std::map<std::string, std::string>;

std::vector<at::Tensor> Parameters(at::ScalarType type) {
  std::vector<at::Tensor> out;
  for (const std::vector<std::int64_t>& shape :
       std::vector<std::vector<std::int64_t>>{{3, 2}, {1}, {4}, {0}}) {
    std::int64_t n = 1;
    for (const std::int64_t extent : shape) n *= extent;
    out.push_back(at::linspace(-1, 1, n, type).view(shape).set_requires_grad(true));
  }
  return out;
}

// A loss with curvature of its own for every update.
at::Tensor Loss(const std::vector<at::Tensor>& p, int update) {
  at::Tensor loss = at::zeros({}, p[0].options());
  for (std::size_t i = 0; i < p.size(); ++i) {
    loss = loss +
           ((p[i] - 0.3 * static_cast<double>(i) + std::sin(update)) * (1 + 0.5 * i)).pow(2).sum();
  }
  return loss;
}

std::unique_ptr<torch::optim::Optimizer> Theirs(const Recipe& r, double lr,
                                                std::vector<at::Tensor> p) {
  switch (r.optimizer) {
    case OptimizerKind::kSgd:
      return std::make_unique<torch::optim::SGD>(
          p, torch::optim::SGDOptions(lr).momentum(r.momentum).weight_decay(r.weight_decay));
    case OptimizerKind::kAdam:
      return std::make_unique<torch::optim::Adam>(p, torch::optim::AdamOptions(lr)
                                                         .betas({r.beta1, r.beta2})
                                                         .eps(r.eps)
                                                         .weight_decay(r.weight_decay));
    case OptimizerKind::kAdamW:
      break;
  }
  return std::make_unique<torch::optim::AdamW>(p, torch::optim::AdamWOptions(lr)
                                                      .betas({r.beta1, r.beta2})
                                                      .eps(r.eps)
                                                      .weight_decay(r.weight_decay));
}

// Ours against LibTorch's own loops, with clipping, rate and average written out.
TEST(NetworkOptimizer, DoesWhatTorchDoes) {
  const std::vector<Texts> recipes = {
      {{"optimizer", "sgd"}},
      {{"optimizer", "sgd"}, {"momentum", "0.9"}, {"weight-decay", "0.1"}},
      {{"optimizer", "sgd"}, {"clip-norm", "0.5"}, {"ema", "0.8"}},
      {{"optimizer", "adam"}},
      {{"optimizer", "adam"}, {"weight-decay", "0.2"}, {"beta1", "0.5"}, {"eps", "0.01"}},
      {{"optimizer", "adamw"}, {"lr-schedule", "cosine"}, {"warmup", "3"}, {"ema", "0.9"}},
      {{"optimizer", "adamw"}, {"clip-norm", "1"}, {"lr-schedule", "linear"}, {"beta2", "0.9"}},
  };
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const Texts& options : recipes) {
      const Recipe recipe = Recipe::Parse(options).value();
      const double lr = 0.05, close = type == at::kDouble ? 1e-12 : 2e-5;
      const int updates = 12;
      std::vector<at::Tensor> ours = Parameters(type), theirs = Parameters(type), average;
      for (const at::Tensor& p : theirs) average.push_back(p.detach().clone());
      Optimizer optimizer = Optimizer::Create(ours, recipe, lr, updates).value();
      const auto reference = Theirs(recipe, lr, theirs);
      for (int u = 0; u < updates; ++u) {
        const double scale = u % 2 == 0 ? 1 : 128;  // as of mixed precision
        (Loss(ours, u) * scale).backward();
        const auto step = optimizer.Step(u, scale).value();
        reference->zero_grad();
        Loss(theirs, u).backward();
        const c10::NoGradGuard no_gradients;
        double squares = 0;
        for (const at::Tensor& p : theirs) squares += p.grad().square().sum().item<double>();
        EXPECT_NEAR(step.norm, std::sqrt(squares), 1e-5 * std::sqrt(squares));
        EXPECT_TRUE(step.finite);
        if (recipe.clip_norm > 0) {
          const double factor = std::min(1.0, recipe.clip_norm / (std::sqrt(squares) + 1e-6));
          for (at::Tensor& p : theirs) p.mutable_grad().mul_(factor);
        }
        for (auto& group : reference->param_groups()) {
          group.options().set_lr(lr * recipe.RateFactor(u, updates));
        }
        reference->step();
        for (std::size_t i = 0; i < theirs.size(); ++i) {
          average[i] = recipe.ema * average[i] + (1 - recipe.ema) * theirs[i];
        }
      }
      for (std::size_t i = 0; i < ours.size(); ++i) {
        EXPECT_TRUE(at::allclose(ours[i], theirs[i], close, close))
            << i << " of " << options.size();
        const at::Tensor frozen = recipe.ema > 0 ? average[i] : theirs[i];
        EXPECT_TRUE(at::allclose(optimizer.Frozen()[i], frozen, close, close));
      }
    }
  }
}

TEST(NetworkOptimizer, AStateTakenUpGoesOnBitByBit) {
  const Recipe recipe =
      Recipe::Parse({{"optimizer", "adamw"}, {"ema", "0.9"}, {"clip-norm", "1"}}).value();
  std::vector<at::Tensor> whole = Parameters(at::kFloat);
  Optimizer a = Optimizer::Create(whole, recipe, 0.05, 10).value();
  Optimizer::State middle;
  std::vector<at::Tensor> parameters;
  for (int u = 0; u < 10; ++u) {
    if (u == 4) {
      middle = a.Save();
      for (const at::Tensor& p : whole) {
        parameters.push_back(p.detach().clone().set_requires_grad(true));
      }
    }
    Loss(whole, u).backward();
    ASSERT_TRUE(a.Step(u).ok());
  }
  Optimizer b = Optimizer::Create(parameters, recipe, 0.05, 10).value();
  ASSERT_TRUE(b.Restore(middle).ok());
  for (int u = 4; u < 10; ++u) {
    Loss(parameters, u).backward();
    ASSERT_TRUE(b.Step(u).ok());
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_TRUE(at::equal(whole[i], parameters[i]));
    EXPECT_TRUE(at::equal(a.Frozen()[i], b.Frozen()[i]));
  }
  middle.second.pop_back();
  EXPECT_EQ(b.Restore(middle).code(), absl::StatusCode::kDataLoss);
}

TEST(NetworkOptimizer, AGradientThatIsNotFiniteMovesNothing) {
  std::vector<at::Tensor> p = Parameters(at::kFloat);
  Optimizer optimizer =
      Optimizer::Create(p, Recipe::Parse({{"optimizer", "adam"}}).value(), 0.1, 5).value();
  const at::Tensor before = p[0].detach().clone();
  (p[0].sum() * std::numeric_limits<double>::infinity()).backward();
  const auto step = optimizer.Step(0).value();
  EXPECT_FALSE(step.finite);
  EXPECT_TRUE(at::equal(p[0], before));
  EXPECT_EQ(optimizer.Save().steps, 0);
  EXPECT_FALSE(p[0].grad().defined());
}

TEST(NetworkOptimizer, ParametersWithoutAGradientStay) {
  std::vector<at::Tensor> p = Parameters(at::kFloat);
  Optimizer optimizer = Optimizer::Create(p, Recipe(), 0.1, 5).value();
  const at::Tensor before = p[2].detach().clone(), moved = p[0].detach().clone();
  p[0].sum().backward();
  ASSERT_TRUE(optimizer.Step(0).ok());
  EXPECT_TRUE(at::equal(p[2], before));
  EXPECT_FALSE(at::equal(p[0], moved));
}

TEST(NetworkOptimizer, WhatDoesNotFitIsAnError) {
  const auto error = [](const Recipe& recipe, double lr) {
    return std::string(Optimizer::Create(Parameters(at::kFloat), recipe, lr, 5).status().message());
  };
  EXPECT_THAT(error(Recipe(), 0), HasSubstr("learning rate is 0"));
  EXPECT_THAT(error(Recipe::Parse({{"draws", "chi2"}}).value(), 1), HasSubstr("--draws"));
  EXPECT_THAT(error(Recipe::Parse({{"warmup", "6"}}).value(), 1), HasSubstr("warmup"));
  EXPECT_FALSE(Optimizer::Create({}, Recipe(), 1, 5).ok());
}

TEST(NetworkPrecision, TheScaleGrowsAndFallsAsTorchsDoes) {
  LossScale scale(Precision::kFloat16);
  EXPECT_EQ(scale.scale(), 65536);
  EXPECT_TRUE(scale.Update(false));
  EXPECT_EQ(scale.scale(), 32768);
  for (int i = 0; i < LossScale::kGrowthInterval - 1; ++i) EXPECT_TRUE(scale.Update(true));
  EXPECT_EQ(scale.scale(), 32768);
  EXPECT_TRUE(scale.Update(true));
  EXPECT_EQ(scale.scale(), 65536);
  EXPECT_EQ(scale.good(), 0);
  int falls = 0;
  while (scale.Update(false)) ASSERT_LT(++falls, 100);
  LossScale full(Precision::kFull);
  EXPECT_EQ(full.scale(), 1);
  EXPECT_TRUE(full.Update(true));
  EXPECT_FALSE(full.Update(false));
}

TEST(NetworkPrecision, AutocastEndsWithItsScope) {
  const at::Tensor a = at::ones({4, 4});
  EXPECT_EQ(at::matmul(a, a).scalar_type(), at::kFloat);
  {
    const Autocast autocast(Precision::kBfloat16, at::kCPU);
    EXPECT_EQ(at::matmul(a, a).scalar_type(), at::kBFloat16);
    {
      const Autocast inner(Precision::kFloat16, at::kCPU);
      EXPECT_EQ(at::matmul(a, a).scalar_type(), at::kHalf);
    }
    EXPECT_EQ(at::matmul(a, a).scalar_type(), at::kBFloat16);
  }
  EXPECT_EQ(at::matmul(a, a).scalar_type(), at::kFloat);
  {
    const Autocast none(Precision::kFull, at::kCPU);
    EXPECT_EQ(at::matmul(a, a).scalar_type(), at::kFloat);
  }
  EXPECT_FALSE(ParsePrecision("half").ok());
  EXPECT_EQ(ParsePrecision("bf16").value(), Precision::kBfloat16);
}

}  // namespace
}  // namespace mergeplan::network
