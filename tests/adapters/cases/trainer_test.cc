#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "adapters/linear/embedding.h"
#include "adapters/noise/noise.h"
#include "tests/adapters/linear/support.h"

namespace mergeplan {
namespace {

using ::mergeplan::testing::RandomTask;
using ::mergeplan::testing::TrainToEnd;

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

}  // namespace
}  // namespace mergeplan
