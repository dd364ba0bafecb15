#include "adapters/network/trainer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "adapters/network/wrapper.h"
#include "tests/adapters/network/support.h"

namespace mergeplan::network {
namespace {

using testing::Numbers;
using testing::SmallNetwork;
using testing::SmallSignature;

constexpr Prediction kPredictions[] = {Prediction::kEpsilon, Prediction::kSample,
                                       Prediction::kVPrediction, Prediction::kFlow};

// F as x0 in native units, from what the network says at the native state.
at::Tensor EstimateOf(Prediction prediction, const at::Tensor& native, const at::Tensor& F,
                      double alpha, double sigma, double sigma_data) {
  switch (prediction) {
    case Prediction::kEpsilon:
      return (native - sigma * F) / alpha;
    case Prediction::kSample:
      return F;
    case Prediction::kVPrediction: {
      const double c = alpha * sigma_data, n = c * c + sigma * sigma;
      return sigma_data * (c * native - sigma * std::sqrt(n) * F) / n;
    }
    case Prediction::kFlow:
      break;
  }
  return (native - sigma * F) / (alpha + sigma);
}

// Everything that the trainer does written out plainly in native coordinates, with LibTorch's own
// autograd and optimizer, for random networks, schedules, jumps, losses and recipes.
TEST(NetworkTrainer, DoesWhatAPlainLoopDoes) {
  std::mt19937 random(11);
  const auto pick = [&](int n) { return static_cast<int>(random() % n); };
  const char* names[] = {"ddpm-linear", "edm", "flow:shift=2", "ddpm-cosine"};
  for (int round = 0; round < 40; ++round) {
    const int T = 2 + pick(5);
    const std::string name = names[pick(4)];
    const Schedule s = LoadSchedule(name, T).value();
    Signature signature = SmallSignature(2, kPredictions[pick(4)], "float64");
    signature.sigma_data = s.data_scale;
    int j = 1 + pick(T);
    if (s.alpha[j] == 0) --j;  // flow's last level; T is 2 or more
    const int landing = pick(j), first = landing + 1;
    const LossSpace space = std::vector<LossSpace>{LossSpace::kZ, LossSpace::kX0,
                                                   LossSpace::kEpsilon, LossSpace::kV}[pick(4)];
    const Weighting weighting =
        std::vector<Weighting>{Weighting::kUniform, Weighting::kSnr, Weighting::kTruncatedSnr,
                               Weighting::kMinSnrGamma}[pick(4)];
    SCOPED_TRACE(::testing::Message() << round << ": " << name << " T " << T << " [" << first
                                      << ", " << j << "] " << ToString(signature.prediction) << " "
                                      << ToString(space) << " " << ToString(weighting));
    const NetworkSteps steps = NetworkSteps::Create(signature, s).value();
    // Adam hardly sees a factor of the loss, SGD does; its rate is made for the factor.
    const bool sgd = pick(2) == 0;
    std::map<std::string, std::string> options = {{"optimizer", sgd ? "sgd" : "adamw"}};
    const int accumulate = 1 + pick(2);
    options["accumulate"] = std::to_string(accumulate);
    if (pick(2) == 0) options["lr-schedule"] = "cosine";
    if (pick(2) == 0) options["ema"] = "0.75";
    const Recipe recipe = Recipe::Parse(options).value();
    const std::vector<double> variances = {0.4, 1.7};
    Frozen frozen;
    frozen.teacher = MakeGaussianTeacher(variances, s, {2}).value();
    frozen.student = &steps;
    const std::shared_ptr<Inputs> inputs =
        MakeGaussianInputs(variances, s, {2}, at::kDouble).value();

    TrainTask task;
    task.name = "merge";
    task.range = {first, j};
    task.landing = landing;
    task.target = {{j, first - 1, -1, 0}};
    task.factor = LossFactor({space, weighting, 2.5}, s, j, landing).value();
    TrainerOptions trainer_options;
    trainer_options.recipe = recipe;
    const double output = LandingAt(signature, s, j, landing)->output;
    const double rate =
        sgd ? 3e-3 / (1e-3 + task.factor * output * output * s.level_scale[j]) : 3e-3;
    trainer_options.lr = rate;
    trainer_options.updates = 4;
    trainer_options.batch = 5;
    trainer_options.seed = 100 + round;
    const auto trainer =
        Trainer::Create(SmallNetwork(signature, 6, round), {task}, frozen, inputs, trainer_options)
            .value();
    while (!trainer->done()) ASSERT_TRUE(trainer->Update().ok());

    // Plainly.
    const auto network = SmallNetwork(signature, 6, round);
    std::vector<at::Tensor> parameters, average;
    for (const auto& [parameter, tensor] : network->Parameters()) {
      parameters.push_back(tensor);
      average.push_back(tensor.detach().clone());
    }
    std::unique_ptr<torch::optim::Optimizer> theirs;
    if (sgd) {
      theirs = std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(rate));
    } else {
      theirs = std::make_unique<torch::optim::AdamW>(
          parameters, torch::optim::AdamWOptions(rate).weight_decay(recipe.weight_decay));
    }
    const double alpha = s.level_scale[j] * s.alpha[j] / s.data_scale;
    const double sigma = s.level_scale[j] * s.sigma[j];
    const double snr = s.alpha[j] * s.alpha[j] / (s.sigma[j] * s.sigma[j]);
    double weight = 1;
    if (weighting == Weighting::kSnr) weight = snr;
    if (weighting == Weighting::kTruncatedSnr) weight = std::max(snr, 1.0);
    if (weighting == Weighting::kMinSnrGamma) weight = std::min(snr, 2.5);
    for (int u = 0; u < 4; ++u) {
      theirs->zero_grad();
      double recorded = 0;
      for (int a = 0; a < accumulate; ++a) {
        RowStream stream;
        stream.seed = 100 + round;
        stream.first = first;
        stream.last = j;
        const at::Tensor z = inputs->Draw(j, stream, (u * accumulate + a) * 5, 5).value();
        at::Tensor target = z;
        for (int t = j; t >= first; --t) {
          target = frozen.teacher->Jump(target, t, t - 1).value();
        }
        const at::Tensor native = z * s.level_scale[j];
        const at::Tensor F =
            network->Forward(native, at::full({5}, 1.0 * j / T, at::kDouble), {}).value();
        const at::Tensor x0 =
            EstimateOf(signature.prediction, native, F, alpha, sigma, s.data_scale) / s.data_scale;
        const at::Tensor eps = (z - s.alpha[j] * x0) / s.sigma[j];
        const at::Tensor out = s.alpha[landing] * x0 + s.sigma[landing] * eps;
        recorded += (out - target).square().sum(1).mean().item<double>() / accumulate;
        // What the target says x0, eps and v are.
        const double D = s.alpha[landing] * s.sigma[j] - s.alpha[j] * s.sigma[landing];
        const at::Tensor truth = (s.sigma[j] * target - s.sigma[landing] * z) / D;
        const at::Tensor truth_eps = (z - s.alpha[j] * truth) / s.sigma[j];
        at::Tensor error;
        double of_space = 1;
        if (space == LossSpace::kZ) {
          error = out - target;
          of_space = weight;
        } else if (space == LossSpace::kX0) {
          error = x0 - truth;
          of_space = weight;
        } else if (space == LossSpace::kEpsilon) {
          error = eps - truth_eps;
          of_space = weighting == Weighting::kUniform ? 1 : weight / snr;
        } else {
          error = s.alpha[j] * (eps - truth_eps) - s.sigma[j] * (x0 - truth);
          of_space = weighting == Weighting::kUniform ? 1 : weight / (snr + 1);
        }
        (of_space * error.square().sum(1).mean() / accumulate).backward();
      }
      EXPECT_NEAR(trainer->losses()[0][u], recorded, 1e-7 * recorded + 1e-14);
      theirs->param_groups()[0].options().set_lr(rate * recipe.RateFactor(u, 4));
      theirs->step();
      const c10::NoGradGuard no_gradients;
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        average[i] = recipe.ema * average[i] + (1 - recipe.ema) * parameters[i];
      }
    }
    const std::vector<double> found = Numbers(*trainer->Finish().value());
    const std::vector<double> start = Numbers(*SmallNetwork(signature, 6, round));
    double moved = 0;
    for (std::size_t n = 0; n < start.size(); ++n) {
      moved = std::max(moved, std::abs(found[n] - start[n]));
    }
    EXPECT_GT(moved, 1e-10);
    std::size_t k = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const at::Tensor flat = (recipe.ema > 0 ? average[i] : parameters[i].detach()).contiguous();
      for (std::int64_t n = 0; n < flat.numel(); ++n, ++k) {
        EXPECT_NEAR(found[k], flat.const_data_ptr<double>()[n], 1e-5 * moved + 1e-14) << i;
      }
    }
  }
}

// Two merges that share a network: the sum of both gradients, each on its own rows.
TEST(NetworkTrainer, SharedTasksAddTheirGradients) {
  const Schedule s = LoadSchedule("ddpm-linear", 4).value();
  const Signature signature = SmallSignature(2, Prediction::kVPrediction, "float64");
  const NetworkSteps steps = NetworkSteps::Create(signature, s).value();
  Frozen frozen;
  frozen.teacher = MakeGaussianTeacher({0.4, 1.7}, s, {2}).value();
  frozen.student = &steps;
  const std::shared_ptr<Inputs> inputs =
      MakeGaussianInputs({0.4, 1.7}, s, {2}, at::kDouble).value();
  const TrainTask low{"low", {1, 2}, 0, {{2, 0, -1, 0}}, 3.0};
  const TrainTask high{"high", {3, 4}, 2, {{4, 2, -1, 0}}, 0.5};
  TrainerOptions options;
  options.lr = 0.01;
  options.updates = 1;
  options.batch = 7;
  const std::vector<double> start = Numbers(*SmallNetwork(signature, 6, 1));
  const auto moved = [&](std::vector<TrainTask> tasks) {
    const auto trainer =
        Trainer::Create(SmallNetwork(signature, 6, 1), std::move(tasks), frozen, inputs, options)
            .value();
    EXPECT_TRUE(trainer->Update().ok());
    std::vector<double> out = Numbers(trainer->module());
    for (std::size_t k = 0; k < out.size(); ++k) out[k] -= start[k];
    return out;
  };
  const std::vector<double> both = moved({low, high}), one = moved({low}), other = moved({high});
  double largest = 0;
  for (std::size_t k = 0; k < both.size(); ++k) {
    EXPECT_NEAR(both[k], one[k] + other[k], 1e-14);
    largest = std::max(largest, std::abs(other[k]));
  }
  EXPECT_GT(largest, 1e-4);
}

// A batch smaller than the number of levels, one row, one level.
TEST(NetworkTrainer, FitsOfAnySizeRun) {
  for (const auto& [T, batch] : std::vector<std::pair<int, int>>{{1, 1}, {1, 9}, {5, 1}, {40, 7}}) {
    const Schedule s = LoadSchedule("ddpm-linear", T).value();
    const Signature signature = SmallSignature(2, Prediction::kEpsilon, "float64");
    const NetworkSteps steps = NetworkSteps::Create(signature, s).value();
    Frozen frozen;
    frozen.teacher = MakeGaussianTeacher({0.4, 1.7}, s, {2}).value();
    frozen.student = &steps;
    const std::shared_ptr<Inputs> inputs =
        MakeGaussianInputs({0.4, 1.7}, s, {2}, at::kDouble).value();
    TrainerOptions options;
    options.lr = 0.01;
    options.updates = 3;
    options.batch = batch;
    options.fit_loss = {LossSpace::kEpsilon, Weighting::kUniform, 5};
    const auto trainer =
        Trainer::Create(SmallNetwork(signature, 6, 1), {}, frozen, inputs, options).value();
    while (!trainer->done()) ASSERT_TRUE(trainer->Update().ok());
    EXPECT_EQ(trainer->calls()[0], 3 * batch);
    EXPECT_GT(trainer->losses()[0][2], 0);
  }
}

}  // namespace
}  // namespace mergeplan::network
