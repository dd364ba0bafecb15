#include "adapters/cases/make_trainer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "adapters/linear/embedding.h"
#include "adapters/noise/noise.h"
#include "tests/adapters/linear/scores.h"
#include "tests/adapters/linear/support.h"

namespace mergeplan {
namespace {

using ::mergeplan::testing::Compare;
using ::mergeplan::testing::kLimit;
using ::mergeplan::testing::RandomTask;
using ::mergeplan::testing::RunToEnd;
using ::mergeplan::testing::Scores;
using ::mergeplan::testing::ShrinkageTask;
using ::mergeplan::testing::TrainToEnd;
using ::testing::AllOf;
using ::testing::HasSubstr;

TrainerOptions Options(int batch, std::int64_t updates,
                       const std::map<std::string, std::string>& recipe = {}) {
  TrainerOptions options;
  options.lr = 0.02;
  options.updates = updates;
  options.batch = batch;
  options.recipe = *Recipe::Parse(recipe);
  return options;
}

at::Tensor Row(const std::vector<double>& values) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kDouble);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<double>());
  return tensor;
}

// The step by LibTorch's autograd and its own fused optimizers, with all 64 weights a dimension, on
// the samples that the trainer draws.
TEST(Trainer, IsWhatPyTorchComputes) {
  constexpr int kBatch = 8, kDims = 5, kUpdates = 12;
  using RecipeOptions = std::map<std::string, std::string>;
  const std::vector<RecipeOptions> recipes = {
      {},
      {{"momentum", "0.9"}},
      {{"momentum", "0.9"}, {"weight-decay", "0.1"}, {"lr-schedule", "cosine"}, {"warmup", "3"}},
      {{"optimizer", "adam"}},
      {{"optimizer", "adam"}, {"eps", "0.01"}, {"lr-schedule", "linear"}},
      {{"optimizer", "adamw"}, {"weight-decay", "0.2"}, {"beta1", "0.7"}, {"beta2", "0.95"}}};
  for (const char* student : {"step", "embedding"}) {
    for (RecipeOptions recipe : recipes) {
      recipe["student"] = student;
      TrainerOptions options = Options(kBatch, kUpdates, recipe);
      const Recipe& r = options.recipe;
      const bool embedding = r.student == StudentKind::kEmbedding;
      options.feature_norm = embedding ? kEmbeddingNorm : 1;
      options.lr = embedding ? 1e-3 : 0.02;
      const MergeTask task = RandomTask({3, 6}, kDims, 1);
      const TrainerState ours = TrainToEnd({task}, options);

      NoiseStream stream(task.seed, 3, 6, 0);
      at::Tensor noise = at::empty({kUpdates, kBatch, kDims}, at::kFloat);
      stream.Fill(noise.mutable_data_ptr<float>(), noise.numel());
      const at::Tensor phi =
          embedding ? Row(SinusoidalEmbedding(task.time)) : at::ones({1}, at::kDouble);
      const at::Tensor p = Row(task.target), scale = Row(task.scale);
      at::Tensor w = at::outer(Row(task.start), phi) / phi.square().sum();
      at::Tensor first = at::zeros_like(w), second = at::zeros_like(w);
      at::Tensor step = at::zeros({}, at::kFloat);
      for (int u = 0; u < kUpdates; ++u) {
        const at::Tensor z = noise[u].to(at::kDouble) * scale;
        w = w.detach().requires_grad_(true);
        const at::Tensor loss = (z * at::mv(w, phi) - z * p).square().sum(1).mean();
        loss.backward();
        EXPECT_NEAR(ours.curve[u], loss.item<double>(), 1e-11 * (1 + loss.item<double>()));
        at::Tensor gradient = w.grad();
        w = w.detach();
        const double lr = options.lr * r.RateFactor(u, kUpdates);
        if (r.optimizer == OptimizerKind::kSgd) {
          const bool buffers = r.momentum > 0;
          at::_fused_sgd_({w}, {gradient}, buffers ? at::TensorList(first) : at::TensorList(),
                          r.weight_decay, r.momentum, lr, /*dampening=*/0,
                          /*nesterov=*/false, /*maximize=*/false, /*is_first_step=*/u == 0);
        } else {
          step.add_(1);
          const auto update = [&](const auto& function) {
            function({w}, {gradient}, {first}, {second}, at::TensorList(), {step}, lr, r.beta1,
                     r.beta2, r.weight_decay, r.eps, /*amsgrad=*/false, /*maximize=*/false,
                     std::nullopt, std::nullopt);
          };
          using Function =
              void (*)(at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                       at::TensorList, at::TensorList, double, double, double, double, double, bool,
                       bool, const std::optional<at::Tensor>&, const std::optional<at::Tensor>&);
          update(r.optimizer == OptimizerKind::kAdam ? static_cast<Function>(at::_fused_adam_)
                                                     : static_cast<Function>(at::_fused_adamw_));
        }
      }
      const at::Tensor a = at::mv(w, phi);
      for (int k = 0; k < kDims; ++k) {
        EXPECT_NEAR(ours.parameters[k], a[k].item<double>(), 1e-12)
            << student << ", " << r.Options().at("optimizer") << ", momentum " << r.momentum;
      }
    }
  }
}

TEST(Trainer, OurLoopsAndTensorsAgreeSampleBySample) {
  for (const int d : {1, 5, 100}) {
    for (const int batch : {1, 64, 300}) {
      for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
        TrainerOptions options = Options(batch, 40, {{"lr-schedule", "cosine"}, {"warmup", "5"}});
        options.dtype = dtype;
        options.lr = batch == 1 ? 0.01 : 0.05;
        options.feature_norm = 1.5;
        const std::vector<MergeTask> tasks = {RandomTask({1, 2}, d, 2), RandomTask({3, 7}, d, 3)};
        const TrainerState fused = RunToEnd(MakeTrainer(tasks, options, {}, StepKind::kFused));
        const TrainerState tensor = RunToEnd(MakeTrainer(tasks, options, {}, StepKind::kTensor));
        const double tolerance = dtype == DType::kFloat64 ? 1e-13 : 1e-5;
        ASSERT_EQ(fused.parameters.size(), tensor.parameters.size());
        for (size_t k = 0; k < fused.parameters.size(); ++k) {
          EXPECT_NEAR(fused.parameters[k], tensor.parameters[k], tolerance)
              << "d = " << d << ", batch = " << batch << ", " << ToString(dtype);
        }
        for (size_t k = 0; k < fused.curve.size(); ++k) {
          EXPECT_NEAR(fused.curve[k], tensor.curve[k], tolerance * (1 + 100 * fused.curve[0]));
        }
      }
    }
  }
}

TEST(Trainer, TensorsGoOnFromEverySavedState) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    TrainerOptions options = Options(100, 13);
    options.dtype = dtype;
    const std::vector<MergeTask> tasks = {RandomTask({1, 2}, 100, 2), RandomTask({3, 7}, 100, 3)};
    auto whole = MakeTrainer(tasks, options, {}, StepKind::kTensor);
    ASSERT_TRUE(whole.ok()) << whole.status();
    std::vector<TrainerState> states = {(*whole)->Save()};
    while (!(*whole)->done()) {
      ASSERT_TRUE((*whole)->Advance().ok());
      states.push_back((*whole)->Save());
    }
    ASSERT_GT(states.size(), 5u);
    for (size_t s = 0; s < states.size(); s += 3) {
      auto resumed = MakeTrainer(tasks, options, {}, StepKind::kTensor);
      ASSERT_TRUE(resumed.ok());
      ASSERT_TRUE((*resumed)->Restore(states[s]).ok());
      const TrainerState end = RunToEnd(std::move(resumed));
      EXPECT_EQ(end.parameters, states.back().parameters);
      EXPECT_EQ(end.curve, states.back().curve);
    }
  }
}

TEST(Trainer, TensorsStopWhereTheLossIsNoFiniteNumber) {
  TrainerOptions options = Options(4, 10000);
  options.lr = 10;  // far beyond what Budget::Validate lets through
  auto trainer = MakeTrainer({RandomTask({3, 9}, 4, 1)}, options, {}, StepKind::kTensor);
  ASSERT_TRUE(trainer.ok());
  absl::Status status;
  while (status.ok() && !(*trainer)->done()) status = (*trainer)->Advance();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("merge [3, 9]"), HasSubstr("rate 10"), HasSubstr("update")));
}

TEST(Trainer, RefusesRecipesThatADeviceDoesNotHave) {
  const Device cuda{true, 0};
  const auto message = [&](const std::map<std::string, std::string>& recipe) {
    const absl::Status status = CheckRecipe(*Recipe::Parse(recipe), cuda, StepKind::kAuto);
    return std::string(status.message());
  };
  EXPECT_EQ(message({{"lr-schedule", "cosine"}, {"warmup", "3"}}), "");
  EXPECT_THAT(
      message({{"draws", "chi2"}}),
      HasSubstr("--draws chi2: not with --device cuda, which has samples; use --device cpu"));
  EXPECT_THAT(message({{"momentum", "0.5"}}), HasSubstr("--momentum 0.5: not with --device cuda"));
  EXPECT_THAT(message({{"optimizer", "adam"}}), HasSubstr("not with --device cuda"));
  EXPECT_THAT(message({{"ema", "0.5"}}), HasSubstr("--ema 0.5: not with --device cuda; use"));
  EXPECT_TRUE(CheckRecipe(*Recipe::Parse({{"draws", "chi2"}}), {}, StepKind::kAuto).ok());
  const TrainerOptions options = Options(4, 10);
  EXPECT_EQ(
      MakeTrainer({RandomTask({3, 9}, 4, 1)}, options, cuda, StepKind::kFused).status().code(),
      absl::StatusCode::kUnimplemented);
  EXPECT_EQ(MakeTrainer({}, options, {}, StepKind::kTensor).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// The law of SGD (linear/law_test.cc) on a GPU, where noise and step are others.
TEST(Trainer, FollowsTheLawOnCuda) {
  if (!std::filesystem::exists("/dev/nvidia0")) {
    GTEST_SKIP() << "no CUDA device: /dev/nvidia0 is missing";
  }
  const absl::StatusOr<Device> device = OpenDevice("cuda");
  ASSERT_TRUE(device.ok()) << device.status();
  constexpr int kTrials = 20000;
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    for (const int batch : {4, 64}) {
      TrainerOptions options;
      options.lr = 0.05;
      options.batch = batch;
      options.updates = 70;  // more than one Advance
      options.dtype = dtype;
      const double n = 0.1;
      const double g = 2 * options.lr * n;
      const std::vector<MergeTask> tasks = {ShrinkageTask({1, 2}, kTrials, n),
                                            ShrinkageTask({3, 4}, kTrials, n)};
      auto trainer = MakeTrainer(tasks, options, *device);
      ASSERT_TRUE(trainer.ok()) << trainer.status();
      ASSERT_TRUE((*trainer)->Advance().ok());
      const TrainerState middle = (*trainer)->Save();
      while (!(*trainer)->done()) ASSERT_TRUE((*trainer)->Advance().ok());
      const TrainerState state = (*trainer)->Save();
      for (int i = 0; i < 2; ++i) {
        const Scores s = Compare(state.parameters.data() + static_cast<std::ptrdiff_t>(i) * kTrials,
                                 kTrials, g, batch, options.updates);
        EXPECT_LT(std::abs(s.mean), kLimit) << "batch " << batch << ", merge " << i;
        EXPECT_LT(std::abs(s.second), kLimit) << "batch " << batch << ", merge " << i;
      }
      auto resumed = MakeTrainer(tasks, options, *device);
      ASSERT_TRUE(resumed.ok());
      ASSERT_TRUE((*resumed)->Restore(middle).ok());
      while (!(*resumed)->done()) ASSERT_TRUE((*resumed)->Advance().ok());
      EXPECT_EQ((*resumed)->Save().parameters, state.parameters);
    }
  }
}

}  // namespace
}  // namespace mergeplan
