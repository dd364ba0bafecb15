// Denoising training: an update against one worked out by hand, going on bit by bit, learning.
#include "adapters/denoising/trainer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "adapters/denoising/state.h"
#include "planner/base/file.h"
#include "tests/adapters/support.h"
#include "tests/adapters/unet/support.h"

namespace mergeplan::denoising {
namespace {

using mergeplan::testing::MakeUNet;
using mergeplan::testing::SmallConfig;
using mergeplan::testing::TemporaryFolder;
using ::testing::HasSubstr;

at::Tensor Pictures(std::int64_t count) {
  return at::sin(at::arange(count * 2 * 8 * 8, at::kFloat) * 0.37).view({count, 2, 8, 8}) * 0.8;
}

std::unique_ptr<Trainer> Make(const std::map<std::string, std::string>& texts,
                              at::ScalarType type = at::kFloat, double dropout = 0,
                              at::Tensor data = Pictures(12)) {
  nlohmann::json config = SmallConfig();
  config["dropout"] = dropout;
  std::unique_ptr<unet::UNet2d> net = MakeUNet(config, 5);
  EXPECT_TRUE(net->To(at::kCPU, type).ok());
  network::Signature signature;
  signature.prediction = network::Prediction::kVPrediction;
  signature.shape = {2, 8, 8};
  signature.table = network::TableOfSchedule("ddpm-cosine", 1000).value();
  const Options options = Options::Parse(texts).value();
  BatchOptions batch;
  batch.seed = static_cast<std::uint64_t>(options.seed);
  batch.rows = options.batch;
  batch.flip = options.flip;
  batch.network = at::TensorOptions().dtype(type);
  Batches batches =
      Batches::Create(std::move(data),
                      TrainingLevels(signature, ScheduleOfTable(*signature.table), options).value(),
                      batch)
          .value();
  auto trainer = Trainer::Create(std::move(net), std::move(batches), options);
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  return trainer.ok() ? *std::move(trainer) : nullptr;
}

std::map<std::string, std::string> With(std::map<std::string, std::string> more) {
  more.emplace("iterations", "6");
  more.emplace("batch", "4");
  return more;
}

void Advance(Trainer& trainer, int updates) {
  for (int u = 0; u < updates; ++u) {
    const auto update = trainer.Step();
    ASSERT_TRUE(update.ok()) << update.status();
  }
}

bool Same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!at::equal(a[i], b[i])) return false;
  }
  return true;
}

void ExpectSame(const TrainerState& a, const TrainerState& b) {
  EXPECT_EQ(a.updates, b.updates);
  EXPECT_EQ(a.skipped, b.skipped);
  EXPECT_EQ(a.scale, b.scale);
  EXPECT_EQ(a.good, b.good);
  EXPECT_EQ(a.optimizer.steps, b.optimizer.steps);
  EXPECT_TRUE(Same(a.parameters, b.parameters));
  EXPECT_TRUE(Same(a.average, b.average));
  EXPECT_TRUE(Same(a.optimizer.first, b.optimizer.first));
  EXPECT_TRUE(Same(a.optimizer.second, b.optimizer.second));
}

// Three updates of AdamW with warm-up, clipping, accumulation, weighting and the average, in
// double, beside plain arithmetic on the same network.
TEST(DenoisingTrainer, AnUpdateIsTheOneWorkedOutByHand) {
  const auto texts = With({{"lr", "0.01"},
                           {"warmup", "2"},
                           {"clip-norm", "0.5"},
                           {"accumulate", "2"},
                           {"weighting", "min-snr-gamma"},
                           {"ema", "0.9"},
                           {"weight-decay", "0.1"},
                           {"flip", "yes"}});
  const auto trainer = Make(texts, at::kDouble);

  const auto net = MakeUNet(SmallConfig(), 5);
  ASSERT_TRUE(net->To(at::kCPU, at::kDouble).ok());
  network::Signature signature;
  signature.prediction = network::Prediction::kVPrediction;
  signature.shape = {2, 8, 8};
  signature.table = network::TableOfSchedule("ddpm-cosine", 1000).value();
  const Options options = Options::Parse(texts).value();
  BatchOptions batch_options;
  batch_options.rows = 4;
  batch_options.flip = true;
  batch_options.network = at::TensorOptions().dtype(at::kDouble);
  const Batches batches =
      Batches::Create(Pictures(12),
                      TrainingLevels(signature, ScheduleOfTable(*signature.table), options).value(),
                      batch_options)
          .value();
  std::vector<at::Tensor> p, m, v, average;
  for (const auto& [name, tensor] : net->Parameters()) {
    p.push_back(tensor);
    m.push_back(at::zeros_like(tensor));
    v.push_back(at::zeros_like(tensor));
    average.push_back(tensor.detach().clone());
  }
  const double rates[] = {0.005, 0.01, 0.01 * (1 + std::cos(M_PI * 0 / 4)) / 2};
  for (int u = 0; u < 3; ++u) {
    double loss = 0;
    for (int k = 0; k < 2; ++k) {
      const Batch batch = batches.Draw(2 * u + k).value();
      const at::Tensor out = net->Forward(batch.input, batch.time, {}).value();
      at::Tensor sum = at::zeros({}, at::kDouble);
      for (int r = 0; r < 4; ++r) {
        sum = sum + batch.weight[r] * (out[r] - batch.target[r]).pow(2).sum() / (2 * 8 * 8);
      }
      const at::Tensor value = sum / 4;
      (value / 2).backward();
      loss += value.item<double>() / 2;
    }
    double squares = 0;
    for (at::Tensor& parameter : p) squares += parameter.grad().pow(2).sum().item<double>();
    const double norm = std::sqrt(squares), clip = std::min(1.0, 0.5 / (norm + 1e-6));
    const auto update = trainer->Step();
    ASSERT_TRUE(update.ok()) << update.status();
    EXPECT_NEAR(update->loss, loss, 1e-12 * loss);
    EXPECT_NEAR(update->norm, norm, 1e-10 * norm);
    EXPECT_NEAR(update->lr, rates[u], 1e-15);
    const c10::AutoGradMode no_gradients(false);
    const double kept = std::min(0.9, (1.0 + u) / (10.0 + u));
    for (std::size_t i = 0; i < p.size(); ++i) {
      const at::Tensor g = p[i].grad() * clip;
      p[i].mul_(1 - rates[u] * 0.1);
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.999 * v[i] + 0.001 * g * g;
      const at::Tensor first = m[i] / (1 - std::pow(0.9, u + 1));
      const at::Tensor second = v[i] / (1 - std::pow(0.999, u + 1));
      p[i].sub_(rates[u] * first / (second.sqrt() + 1e-8));
      average[i] = kept * average[i] + (1 - kept) * p[i];
      p[i].mutable_grad() = at::Tensor();
    }
    const TrainerState state = trainer->Save();
    for (std::size_t i = 0; i < p.size(); ++i) {
      // A gradient that is rounding noise (of a key's bias) has a sign only.
      if (v[i].max().item<double>() < 1e-24) continue;
      EXPECT_LT((state.parameters[i] - p[i]).abs().max().item<double>(), 1e-8) << i;
      EXPECT_LT((state.average[i] - average[i]).abs().max().item<double>(), 1e-8) << i;
    }
  }
  const auto trained = trainer->Trained();
  ASSERT_TRUE(trained.ok());
  const auto parameters = (*trained)->Parameters();
  const TrainerState state = trainer->Save();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(parameters[i].second, state.average[i]));
  }
}

// Stopped after every update, through a file, with all that has a state of its own.
TEST(DenoisingTrainer, GoesOnBitByBit) {
  const TemporaryFolder folder;
  const std::map<std::string, std::string> recipes[] = {
      {{"optimizer", "adamw"}, {"accumulate", "2"}},
      {{"optimizer", "sgd"}, {"momentum", "0.9"}, {"ema", "0"}},
      {{"optimizer", "adam"}, {"precision", "bf16"}}};
  for (const auto& recipe : recipes) {
    const auto texts = With(recipe);
    const auto whole = Make(texts, at::kFloat, 0.2);
    Advance(*whole, 6);
    std::string path = folder.File("none");
    for (int u = 0; u < 6; ++u) {
      const auto part = Make(texts, at::kFloat, 0.2);
      if (u > 0) {
        const auto read = ReadCheckpoint("name", path);
        ASSERT_TRUE(read.ok()) << read.status();
        ASSERT_TRUE(part->Restore(read->trainer).ok());
      }
      Advance(*part, 1);
      path = folder.File(std::to_string(u));
      ASSERT_TRUE(WriteCheckpoint({part->Save(), Log()}, "name", path).ok());
    }
    ExpectSame(ReadCheckpoint("name", path)->trainer, whole->Save());
  }
}

TEST(DenoisingTrainer, DropoutIsOnInTrainingOnly) {
  const auto with = Make(With({}), at::kFloat, 0.5), without = Make(With({}), at::kFloat, 0);
  EXPECT_NE(with->Step()->loss, without->Step()->loss);
  const auto trained = with->Trained().value();
  const at::Tensor z = Pictures(2), time = at::full({2}, 3, at::kFloat);
  EXPECT_TRUE(
      at::equal(trained->Forward(z, time, {}).value(), trained->Forward(z, time, {}).value()));
}

TEST(DenoisingTrainer, LearnsASmallSet) {
  const auto trainer =
      Make({{"iterations", "80"}, {"batch", "16"}, {"lr", "0.003"}}, at::kFloat, 0, Pictures(2));
  double first = 0, last = 0;
  for (int u = 0; u < 80; ++u) {
    const auto update = trainer->Step();
    ASSERT_TRUE(update.ok()) << update.status();
    (u < 10 ? first : last) += u < 10 || u >= 70 ? update->loss / 10 : 0;
  }
  EXPECT_LT(last, 0.6 * first) << first << " " << last;
  EXPECT_TRUE(trainer->done());
}

TEST(DenoisingTrainer, SaysWhereItDiverges) {
  const auto trainer = Make(With({{"optimizer", "sgd"}, {"lr", "1e30"}, {"warmup", "0"}}));
  absl::Status status;
  for (int u = 0; u < 6 && status.ok(); ++u) status = trainer->Step().status();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("at update"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--lr"));
}

TEST(DenoisingTrainer, DamagedStatesAreRefused) {
  const TemporaryFolder folder;
  const auto trainer = Make(With({}));
  Advance(*trainer, 2);
  const std::string path = folder.File("state");
  ASSERT_TRUE(WriteCheckpoint({trainer->Save(), Log()}, "name", path).ok());
  EXPECT_TRUE(absl::IsNotFound(ReadCheckpoint("name", folder.File("other")).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadCheckpoint("others", path).status()));
  const std::string bytes = ReadFile(path).value();
  for (std::size_t cut : {std::size_t{0}, std::size_t{7}, std::size_t{100}, bytes.size() - 1}) {
    ASSERT_TRUE(WriteFileAtomically(path, bytes.substr(0, cut)).ok());
    EXPECT_FALSE(ReadCheckpoint("name", path).ok()) << cut;
  }
  for (std::size_t at = 9; at < bytes.size(); at += bytes.size() / 17) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    ASSERT_TRUE(WriteFileAtomically(path, changed).ok());
    EXPECT_FALSE(ReadCheckpoint("name", path).ok()) << at;
  }
  TrainerState state = trainer->Save();
  state.updates = 100;
  EXPECT_TRUE(absl::IsDataLoss(Make(With({}))->Restore(state)));
  state = trainer->Save();
  state.parameters.pop_back();
  EXPECT_TRUE(absl::IsDataLoss(Make(With({}))->Restore(state)));
  state = trainer->Save();
  state.optimizer.second[0] = at::zeros({3});
  EXPECT_TRUE(absl::IsDataLoss(Make(With({}))->Restore(state)));
  state = trainer->Save();
  state.scale = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(absl::IsDataLoss(Make(With({}))->Restore(state)));
  EXPECT_TRUE(absl::IsDataLoss(Make(With({{"ema", "0"}}))->Restore(trainer->Save())));
}

}  // namespace
}  // namespace mergeplan::denoising
