// What is trained must shrink as the model says: over k updates of plain SGD on fresh batches of B,
// a - p is multiplied by the product of k independent factors 1 - g X, X = chi^2_B / B, g = 2 lr F
// n. So with many trials (every dimension is one) mean and second moment must be (1-g)^k and
// ((1-g)^2 + 2 g^2 / B)^k, within standard errors that follow from the fourth moment.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "adapters/linear/mean.h"
#include "adapters/linear/trainer.h"
#include "tests/adapters/linear/scores.h"
#include "tests/adapters/linear/support.h"

namespace mergeplan {
namespace {

using ::mergeplan::testing::Compare;
using ::mergeplan::testing::kLimit;
using ::mergeplan::testing::Scores;
using ::mergeplan::testing::ShrinkageTask;
using ::mergeplan::testing::TrainToEnd;

TEST(ShrinkageLaw, HoldsInMeanAndSecondMoment) {
  constexpr int kTrials = 20000;
  for (const auto& [draws, dtype] :
       std::vector<std::pair<Draws, DType>>{{Draws::kSamples, DType::kFloat64},
                                            {Draws::kSamples, DType::kFloat32},
                                            {Draws::kChi2, DType::kFloat64},
                                            {Draws::kChi2, DType::kFloat32}}) {
    for (const int batch : {1, 4, 64}) {
      for (const double g : {0.01, 0.1, 0.4}) {
        TrainerOptions options;
        options.lr = 0.05;
        options.feature_norm = 2;
        options.batch = batch;
        options.updates = g > 0.3 ? 4 : 20;
        options.dtype = dtype;
        options.recipe.draws = draws;
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

// The two ways of drawing give the same distribution, not only the same moments: Kolmogorov and
// Smirnov's distance of 20,000 results of each, beyond 2.7 with a probability of 1e-6.
TEST(ShrinkageLaw, IsTheSameForSamplesAndForTheirSums) {
  constexpr int kTrials = 20000;
  for (const int batch : {1, 3, 64}) {
    TrainerOptions options;
    options.lr = 0.1;
    options.batch = batch;
    options.updates = 3;
    const MergeTask task = ShrinkageTask({1, 2}, kTrials, 1);
    std::vector<double> samples = TrainToEnd({task}, options).parameters;
    options.recipe.draws = Draws::kChi2;
    std::vector<double> sums = TrainToEnd({task}, options).parameters;
    std::sort(samples.begin(), samples.end());
    std::sort(sums.begin(), sums.end());
    double distance = 0;
    size_t j = 0;
    for (int i = 0; i < kTrials; ++i) {
      while (j < sums.size() && sums[j] < samples[i]) ++j;
      distance = std::max(distance, std::abs(static_cast<double>(j) - i - 0.5) / kTrials);
    }
    EXPECT_LT(distance * std::sqrt(kTrials / 2.0), 2.7) << batch;
  }
}

// Means of recipes that have a prediction, from a start and to a target that are both not 0.
TEST(MeanOf, IsTheMeanOfTrainings) {
  constexpr int kTrials = 8000;
  using Options = std::map<std::string, std::string>;
  const std::vector<Options> recipes = {
      {{"lr-schedule", "linear"}, {"warmup", "4"}},
      {{"lr-schedule", "cosine"}, {"accumulate", "3"}},
      {{"momentum", "0.8"}},
      {{"ema", "0.9"}},
      {{"weight-decay", "0.5"}, {"momentum", "0.5"}, {"ema", "0.7"}, {"student", "embedding"}}};
  for (Options recipe : recipes) {
    for (const char* draws : {"samples", "chi2"}) {
      recipe["draws"] = draws;
      TrainerOptions options;
      options.recipe = *Recipe::Parse(recipe);
      options.feature_norm = options.recipe.student == StudentKind::kEmbedding ? 32 : 1.5;
      options.lr = 0.03 / options.feature_norm;
      options.batch = 4;
      options.updates = 15;
      ASSERT_TRUE(options.recipe.has_prediction());
      MergeTask task = ShrinkageTask({1, 2}, kTrials, 0.8);
      task.start.assign(kTrials, 1.3);
      task.target.assign(kTrials, 0.4);
      const std::vector<double> end = TrainToEnd({task}, options).Frozen();
      double sum = 0, squares = 0;
      for (const double v : end) sum += v;
      for (const double v : end) squares += (v - sum / kTrials) * (v - sum / kTrials);
      const MeanOfTraining mean = MeanOf(options, {0.8});
      const double expected = mean.start[0] * 1.3 + mean.target[0] * 0.4;
      EXPECT_LT(std::abs(sum / kTrials - expected), kLimit * std::sqrt(squares) / kTrials)
          << options.recipe.Options().at("lr-schedule") << ", momentum " << options.recipe.momentum;
    }
  }
}

TEST(MeanOf, IsTheProductOfTheRatesForSgd) {
  TrainerOptions options;
  options.recipe = *Recipe::Parse({{"lr-schedule", "cosine"}, {"warmup", "3"}});
  options.lr = 0.02;
  options.feature_norm = 2;
  options.batch = 7;
  options.updates = 30;
  const MeanOfTraining mean = MeanOf(options, {0.5, 3.0});
  for (int k = 0; k < 2; ++k) {
    double gamma = 1;
    for (int u = 0; u < 30; ++u) {
      gamma *= 1 - 2 * 0.02 * options.recipe.RateFactor(u, 30) * 2 * (k == 0 ? 0.5 : 3.0);
    }
    EXPECT_NEAR(mean.start[k], gamma, 1e-14);
    EXPECT_NEAR(mean.target[k], 1 - gamma, 1e-14);
  }
}

}  // namespace
}  // namespace mergeplan
