#include "adapters/runtime/trainer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "adapters/runtime/trainer_parts.h"
#include "tests/adapters/support.h"

namespace mergeplan {
namespace {

using ::mergeplan::testing::TrainToEnd;
using ::testing::HasSubstr;

TrainerOptions Options(int batch, std::int64_t updates) {
  TrainerOptions options;
  options.lr = 0.02;
  options.updates = updates;
  options.batch = batch;
  options.seed = 5;
  return options;
}

MergeTask RandomTask(Range range, int d, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0.2, 1.5);
  MergeTask task;
  task.range = range;
  for (int k = 0; k < d; ++k) {
    task.start.push_back(uniform(random));
    task.target.push_back(uniform(random));
    task.scale.push_back(uniform(random));
  }
  return task;
}

void ExpectSame(const TrainerState& a, const TrainerState& b) {
  EXPECT_EQ(a.updates, b.updates);
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(a.generators, b.generators);
  EXPECT_EQ(a.curve, b.curve);
}

// The step by LibTorch's autograd, on the samples that the trainer draws.
TEST(Trainer, IsSgdAsAutogradComputesIt) {
  constexpr int kBatch = 8, kDims = 5, kUpdates = 10;
  TrainerOptions options = Options(kBatch, kUpdates);
  options.feature_norm = 1.5;
  const MergeTask task = RandomTask({3, 6}, kDims, 1);
  const TrainerState fused = TrainToEnd({task}, options);

  const DrawLayout layout = DrawLayout::Of(kBatch, kDims);
  ASSERT_EQ(layout.lanes, 1);
  ASSERT_GE(layout.updates_per_draw, kUpdates);
  NoiseStream stream(options.seed, 3, 6, 0);
  at::Tensor noise = at::empty({kUpdates, kBatch, kDims}, at::kFloat);
  stream.Fill(noise.mutable_data_ptr<float>(), noise.numel());

  const auto row = [](const std::vector<double>& values) {
    at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kDouble);
    std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<double>());
    return tensor;
  };
  at::Tensor a = row(task.start), p = row(task.target), scale = row(task.scale);
  for (int u = 0; u < kUpdates; ++u) {
    const at::Tensor z = noise[u].to(at::kDouble) * scale;
    a = a.detach().requires_grad_(true);
    const at::Tensor loss = (z * a - z * p).square().sum(1).mean();
    loss.backward();
    EXPECT_NEAR(fused.curve[u], loss.item<double>(), 1e-13 * loss.item<double>());
    a = a.detach() - options.lr * options.feature_norm * a.grad();
  }
  for (int k = 0; k < kDims; ++k) {
    EXPECT_NEAR(fused.parameters[k], a[k].item<double>(), 1e-14);
  }
}

TEST(Trainer, FusedAndTensorStepsAgreeSampleBySample) {
  for (const int d : {1, 5, 100}) {
    for (const int batch : {1, 64, 300}) {
      for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
        TrainerOptions options = Options(batch, 40);
        options.dtype = dtype;
        options.lr = batch == 1 ? 0.01 : 0.05;
        const std::vector<MergeTask> tasks = {RandomTask({1, 2}, d, 2), RandomTask({3, 7}, d, 3)};
        options.step = StepKind::kFused;
        const TrainerState fused = TrainToEnd(tasks, options);
        options.step = StepKind::kTensor;
        const TrainerState tensor = TrainToEnd(tasks, options);
        EXPECT_EQ(fused.generators, tensor.generators);
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

TEST(Trainer, ResultsDoNotDependOnWhatTrainsTogetherOrOnThreads) {
  constexpr int kDims = 200;  // several lanes
  ASSERT_GT(DrawLayout::Of(100, kDims).lanes, 1);
  const TrainerOptions options = Options(100, 60);
  std::vector<MergeTask> tasks;
  tasks.reserve(5);
  for (int i = 0; i < 5; ++i) tasks.push_back(RandomTask({2 * i + 1, 2 * i + 2}, kDims, i));
  SetThreads(1);
  const TrainerState together = TrainToEnd(tasks, options);
  for (int threads : {2, 3}) {
    SetThreads(threads);
    ExpectSame(TrainToEnd(tasks, options), together);
  }
  for (size_t i = 0; i < tasks.size(); ++i) {
    const TrainerState alone = TrainToEnd({tasks[i]}, options);
    const auto begin = together.parameters.begin() + static_cast<std::ptrdiff_t>(i * kDims);
    EXPECT_TRUE(std::equal(alone.parameters.begin(), alone.parameters.end(), begin));
    const auto curve = together.curve.begin() +
                       static_cast<std::ptrdiff_t>(i * CurveUpdates(options.updates).size());
    EXPECT_TRUE(std::equal(alone.curve.begin(), alone.curve.end(), curve));
  }
  SetThreads(0);
}

TEST(Trainer, GoesOnFromEverySavedState) {
  for (const StepKind step : {StepKind::kFused, StepKind::kTensor}) {
    for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
      // One Advance of the fused step is 2^20 numbers: two updates here.
      const bool fused = step == StepKind::kFused;
      const int d = fused ? 256 : 100;
      TrainerOptions options = Options(fused ? 1024 : 100, 13);
      options.step = step;
      options.dtype = dtype;
      const std::vector<MergeTask> tasks = {RandomTask({1, 2}, d, 2), RandomTask({3, 7}, d, 3)};
      auto whole = Trainer::Create(tasks, options);
      ASSERT_TRUE(whole.ok());
      std::vector<TrainerState> states = {(*whole)->Save()};
      while (!(*whole)->done()) {
        ASSERT_TRUE((*whole)->Advance().ok());
        states.push_back((*whole)->Save());
      }
      ASSERT_GT(states.size(), 5u);
      const size_t stride = std::max<size_t>(1, states.size() / 6);
      for (size_t s = 0; s < states.size(); s += stride) {
        auto resumed = Trainer::Create(tasks, options);
        ASSERT_TRUE(resumed.ok());
        ASSERT_TRUE((*resumed)->Restore(states[s]).ok());
        while (!(*resumed)->done()) ASSERT_TRUE((*resumed)->Advance().ok());
        ExpectSame((*resumed)->Save(), states.back());
      }
    }
  }
}

TEST(Trainer, RefusesAStateOfAnotherTraining) {
  const TrainerOptions options = Options(8, 20);
  auto trainer = Trainer::Create({RandomTask({1, 2}, 4, 1)}, options);
  ASSERT_TRUE(trainer.ok());
  TrainerState state = (*trainer)->Save();
  state.parameters.pop_back();
  EXPECT_EQ((*trainer)->Restore(state).code(), absl::StatusCode::kDataLoss);
  state = (*trainer)->Save();
  state.updates = 21;
  EXPECT_EQ((*trainer)->Restore(state).code(), absl::StatusCode::kDataLoss);
}

TEST(Trainer, StopsWhereTheLossIsNoFiniteNumber) {
  for (const StepKind step : {StepKind::kFused, StepKind::kTensor}) {
    TrainerOptions options = Options(4, 10000);
    options.lr = 10;  // far beyond what Budget::Validate lets through
    options.step = step;
    auto trainer = Trainer::Create({RandomTask({3, 9}, 4, 1)}, options);
    ASSERT_TRUE(trainer.ok());
    absl::Status status;
    while (status.ok() && !(*trainer)->done()) status = (*trainer)->Advance();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), ::testing::AllOf(HasSubstr("merge [3, 9]"), HasSubstr("rate 10"),
                                                   HasSubstr("update")));
  }
}

TEST(Trainer, RefusesNumbersThatMakeNoSense) {
  const MergeTask task = RandomTask({1, 2}, 4, 1);
  const auto code = [](std::vector<MergeTask> tasks, TrainerOptions options) {
    return Trainer::Create(std::move(tasks), options).status().code();
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code({}, Options(8, 20)), invalid);
  EXPECT_EQ(code({task}, Options(0, 20)), invalid);
  EXPECT_EQ(code({task}, Options(8, 0)), invalid);
  TrainerOptions options = Options(8, 20);
  options.lr = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(code({task}, options), invalid);
  MergeTask broken = task;
  broken.start[2] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(code({broken}, Options(8, 20)), invalid);
  broken = task;
  broken.scale.pop_back();
  EXPECT_EQ(code({task, broken}, Options(8, 20)), invalid);
}

TEST(CurveUpdates, HoldsFirstAndLastAndIsDenseAtTheStart) {
  for (const std::int64_t updates : {1, 2, 63, 64, 65, 100, 320, 100000}) {
    const std::vector<std::int64_t> points = CurveUpdates(updates);
    EXPECT_EQ(points.front(), 0);
    EXPECT_EQ(points.back(), updates - 1);
    EXPECT_LE(points.size(), 64u);
    EXPECT_TRUE(std::is_sorted(points.begin(), points.end()));
    EXPECT_EQ(std::adjacent_find(points.begin(), points.end()), points.end());
    if (updates <= 64) {
      EXPECT_EQ(static_cast<std::int64_t>(points.size()), updates);
    }
    if (updates > 4) {
      EXPECT_EQ(points[3], 3);
    }
  }
}

TEST(DrawLayout, CutsTheDimensionsIntoLanes) {
  for (const int batch : {1, 7, 64, 2560}) {
    for (const std::int64_t d : {1, 2, 31, 32, 33, 784, 3072, 100000}) {
      const DrawLayout layout = DrawLayout::Of(batch, d);
      EXPECT_EQ(layout.LaneBegin(0), 0);
      EXPECT_EQ(layout.LaneBegin(layout.lanes), d);
      for (int lane = 0; lane < layout.lanes; ++lane) EXPECT_GT(layout.LaneWidth(lane), 0);
      EXPECT_GE(layout.updates_per_draw, 1);
    }
  }
}

}  // namespace
}  // namespace mergeplan
