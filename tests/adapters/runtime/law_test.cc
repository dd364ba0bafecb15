// What is trained must shrink as the model says: over k updates of plain SGD on fresh batches of B,
// a - p is multiplied by the product of k independent factors 1 - g X, X = chi^2_B / B, g = 2 lr F
// n. So with many trials (every dimension is one) mean and second moment must be (1-g)^k and
// ((1-g)^2 + 2 g^2 / B)^k, within standard errors that follow from the fourth moment.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <vector>

#include "adapters/runtime/trainer.h"
#include "tests/adapters/support.h"

namespace mergeplan {
namespace {

using ::mergeplan::testing::ShrinkageTask;
using ::mergeplan::testing::TrainToEnd;

// Two-sided at 4.5 standard errors: 7e-6 per check where the normal law holds. The seeds are fixed.
constexpr double kLimit = 4.5;

struct Scores {
  double mean, second;  // distance from the law in standard errors
};

Scores Compare(const double* gamma, int trials, double g, int batch, std::int64_t updates) {
  const double b = batch, k = static_cast<double>(updates);
  const double m2 = 1 + 2 / b, m3 = m2 * (1 + 4 / b), m4 = m3 * (1 + 6 / b);
  const double first = std::pow(1 - g, k);
  const double second = std::pow((1 - g) * (1 - g) + 2 * g * g / b, k);
  const double fourth =
      std::pow(1 - 4 * g + 6 * g * g * m2 - 4 * std::pow(g, 3) * m3 + std::pow(g, 4) * m4, k);
  double sum = 0, squares = 0;
  for (int t = 0; t < trials; ++t) {
    sum += gamma[t];
    squares += gamma[t] * gamma[t];
  }
  return {(sum / trials - first) / std::sqrt((second - first * first) / trials),
          (squares / trials - second) / std::sqrt((fourth - second * second) / trials)};
}

TEST(ShrinkageLaw, HoldsInMeanAndSecondMoment) {
  constexpr int kTrials = 20000;
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    for (const int batch : {1, 4, 64}) {
      for (const double g : {0.01, 0.1, 0.4}) {
        TrainerOptions options;
        options.lr = 0.05;
        options.feature_norm = 2;
        options.batch = batch;
        options.updates = g > 0.3 ? 4 : 20;
        options.dtype = dtype;
        options.seed = 1;
        const double n = g / (2 * options.lr * options.feature_norm);
        const TrainerState state = TrainToEnd({ShrinkageTask({1, 2}, kTrials, n)}, options);
        const Scores s = Compare(state.parameters.data(), kTrials, g, batch, options.updates);
        EXPECT_LT(std::abs(s.mean), kLimit) << "batch " << batch << ", g " << g;
        EXPECT_LT(std::abs(s.second), kLimit) << "batch " << batch << ", g " << g;
      }
    }
  }
}

// One dimension per training, as a user's one-dimensional problem: many merges side by side.
TEST(ShrinkageLaw, HoldsOverMergesOfOneAndFiveDimensions) {
  for (const int d : {1, 5}) {
    constexpr int kMerges = 3000;
    const double variances[] = {0.2, 0.5, 1.0, 2.0, 4.0};
    TrainerOptions options;
    options.lr = 0.02;
    options.batch = 8;
    options.updates = 15;
    std::vector<MergeTask> tasks;
    for (int i = 0; i < kMerges; ++i) {
      MergeTask task = ShrinkageTask({i + 1, i + 2}, d, 1.0);
      for (int k = 0; k < d; ++k) task.scale[k] = std::sqrt(variances[k]);
      tasks.push_back(task);
    }
    const TrainerState state = TrainToEnd(tasks, options);
    for (int k = 0; k < d; ++k) {
      std::vector<double> gamma;
      gamma.reserve(kMerges);
      for (int i = 0; i < kMerges; ++i) gamma.push_back(state.parameters[i * d + k]);
      const double g = 2 * options.lr * variances[k];
      const Scores s = Compare(gamma.data(), kMerges, g, options.batch, options.updates);
      EXPECT_LT(std::abs(s.mean), kLimit) << "d = " << d << ", k = " << k;
      EXPECT_LT(std::abs(s.second), kLimit) << "d = " << d << ", k = " << k;
    }
  }
}

TEST(ShrinkageLaw, SeesARateThatIsFivePerCentOff) {
  constexpr int kTrials = 20000;
  TrainerOptions options;
  options.lr = 0.05;
  options.batch = 64;
  options.updates = 20;
  const double n = 1;
  const double g = 2 * options.lr * n;
  options.lr *= 1.05;
  const TrainerState state = TrainToEnd({ShrinkageTask({1, 2}, kTrials, n)}, options);
  const Scores s = Compare(state.parameters.data(), kTrials, g, options.batch, options.updates);
  EXPECT_LT(s.mean, -20);
  EXPECT_LT(s.second, -20);
}

// The same on a GPU, where noise and step are others.
TEST(ShrinkageLaw, HoldsOnCuda) {
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
      options.device = *device;
      const double n = 0.1;
      const double g = 2 * options.lr * n;
      const std::vector<MergeTask> tasks = {ShrinkageTask({1, 2}, kTrials, n),
                                            ShrinkageTask({3, 4}, kTrials, n)};
      auto trainer = Trainer::Create(tasks, options);
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
      auto resumed = Trainer::Create(tasks, options);
      ASSERT_TRUE(resumed.ok());
      ASSERT_TRUE((*resumed)->Restore(middle).ok());
      while (!(*resumed)->done()) ASSERT_TRUE((*resumed)->Advance().ok());
      EXPECT_EQ((*resumed)->Save().parameters, state.parameters);
    }
  }
}

// Independent noise for every dimension and every merge: no correlation between their results.
TEST(ShrinkageLaw, NeighboursAreIndependent) {
  constexpr int kTrials = 20000;
  TrainerOptions options;
  options.lr = 0.05;
  options.batch = 4;
  options.updates = 10;
  const TrainerState state =
      TrainToEnd({ShrinkageTask({1, 2}, kTrials, 1), ShrinkageTask({3, 4}, kTrials, 1)}, options);
  const auto correlation = [](const double* x, const double* y, int count) {
    double sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
    for (int t = 0; t < count; ++t) {
      sx += x[t];
      sy += y[t];
      sxx += x[t] * x[t];
      syy += y[t] * y[t];
      sxy += x[t] * y[t];
    }
    return (sxy - sx * sy / count) / std::sqrt((sxx - sx * sx / count) * (syy - sy * sy / count));
  };
  const double* a = state.parameters.data();
  const double limit = kLimit / std::sqrt(kTrials);
  EXPECT_LT(std::abs(correlation(a, a + kTrials, kTrials)), limit);  // two merges
  EXPECT_LT(std::abs(correlation(a, a + 1, kTrials - 1)), limit);    // dimensions side by side
  EXPECT_LT(std::abs(correlation(a, a + 16, kTrials - 16)), limit);
}

}  // namespace
}  // namespace mergeplan
