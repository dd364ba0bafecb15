#include "adapters/linear/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "adapters/noise/noise.h"
#include "planner/runs/curve_updates.h"
#include "tests/adapters/linear/support.h"
#include "tests/oracle/linear_training.h"

namespace mergeplan {
namespace {

using ::mergeplan::testing::RandomTask;
using ::mergeplan::testing::TrainToEnd;
using ::testing::HasSubstr;
using Options = std::map<std::string, std::string>;

TrainerOptions MakeOptions(int batch, std::int64_t updates, const Options& recipe = {}) {
  TrainerOptions options;
  options.lr = 0.02;
  options.updates = updates;
  options.batch = batch;
  const absl::StatusOr<Recipe> parsed = Recipe::Parse(recipe);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  if (parsed.ok()) options.recipe = *parsed;
  if (options.recipe.student == StudentKind::kEmbedding) {
    options.feature_norm = 32;
    options.lr /= 32;
  }
  return options;
}

// Every feature of recipes, alone and together.
const std::vector<Options>& Recipes() {
  static const std::vector<Options> recipes = {
      {},
      {{"draws", "fixed"}},
      {{"accumulate", "3"}},
      {{"lr-schedule", "linear"}, {"warmup", "5"}},
      {{"lr-schedule", "cosine"}, {"warmup", "2"}},
      {{"momentum", "0.9"}},
      {{"momentum", "0.5"}, {"weight-decay", "0.1"}, {"ema", "0.9"}, {"clip-norm", "0.4"}},
      {{"weight-decay", "0.2"}},
      {{"ema", "0.8"}},
      {{"clip-norm", "0.3"}},
      {{"optimizer", "adam"}},
      {{"optimizer", "adam"}, {"draws", "fixed"}, {"clip-norm", "0.2"}},
      {{"optimizer", "adam"}, {"beta1", "0.5"}, {"beta2", "0.9"}, {"eps", "0.01"}},
      {{"optimizer", "adamw"}, {"weight-decay", "0.3"}},
      {{"optimizer", "adamw"},
       {"lr-schedule", "cosine"},
       {"warmup", "3"},
       {"clip-norm", "1"},
       {"ema", "0.95"},
       {"accumulate", "2"}},
  };
  return recipes;
}

std::string Name(const Options& recipe) {
  std::string out;
  for (const auto& [option, value] : recipe) out += " --" + option + " " + value;
  return out;
}

void ExpectSame(const TrainerState& a, const TrainerState& b, const std::string& what = "") {
  EXPECT_EQ(a.updates, b.updates) << what;
  EXPECT_EQ(a.parameters, b.parameters) << what;
  EXPECT_EQ(a.first, b.first) << what;
  EXPECT_EQ(a.second, b.second) << what;
  EXPECT_EQ(a.average, b.average) << what;
  EXPECT_EQ(a.curve, b.curve) << what;
}

// Sample by sample against the training that stores all parameters and moments.
TEST(LinearTrainer, IsThePlainTraining) {
  constexpr int kUpdates = 20;
  for (const char* student : {"step", "embedding"}) {
    for (Options recipe : Recipes()) {
      recipe["student"] = student;
      for (const int d : {1, 5, 40}) {
        for (const int batch : {1, 7, 300}) {
          TrainerOptions options = MakeOptions(batch, kUpdates, recipe);
          if (options.recipe.student == StudentKind::kStep) options.feature_norm = 1.5;
          if (batch == 1) options.lr /= 4;
          const MergeTask task = RandomTask({3, 6}, d, 1);
          const TrainerState fast = TrainToEnd({task}, options);
          const oracle::PlainTraining plain = oracle::TrainPlainly(task, options);
          const std::string what =
              Name(recipe) + ", d = " + std::to_string(d) + ", batch " + std::to_string(batch);
          for (int k = 0; k < d; ++k) {
            EXPECT_NEAR(fast.Frozen()[k], plain.value[k], 1e-11) << what << ", k = " << k;
          }
          for (int u = 0; u < kUpdates; ++u) {
            EXPECT_NEAR(fast.curve[u], plain.curve[u], 1e-11 * (1 + plain.curve[0])) << what;
          }
          // It has learnt, and not nothing.
          EXPECT_NE(fast.Frozen(), task.start) << what;
        }
      }
    }
  }
}

TEST(LinearTrainer, GivesTheSameInFloat32WithinItsPrecision) {
  for (const Options& recipe : Recipes()) {
    TrainerOptions options = MakeOptions(64, 40, recipe);
    const MergeTask task = RandomTask({3, 6}, 20, 1);
    const TrainerState doubles = TrainToEnd({task}, options);
    options.dtype = DType::kFloat32;
    const TrainerState floats = TrainToEnd({task}, options);
    double largest = 0;
    for (int k = 0; k < 20; ++k) {
      largest = std::max(largest, std::abs(doubles.Frozen()[k] - floats.Frozen()[k]));
    }
    EXPECT_LT(largest, 2e-5) << Name(recipe);
    EXPECT_GT(largest, 0) << Name(recipe);  // it is another arithmetic
  }
}

// Large batches of many dimensions, which are drawn in parts, against the sums written out.
TEST(LinearTrainer, DrawsLargeBatchesInParts) {
  constexpr int kDims = 9000, kBatch = 150;
  TrainerOptions options = MakeOptions(kBatch, 2);
  const MergeTask task = RandomTask({1, 4}, kDims, 3);
  absl::StatusOr<std::unique_ptr<Trainer>> trainer = MakeLinearTrainer({task}, options);
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  int advances = 0;
  while (!(*trainer)->done()) {
    ASSERT_TRUE((*trainer)->Advance().ok());
    ++advances;
  }
  EXPECT_GT(advances, 2);  // an update is more than one
  std::vector<double> a = task.start;
  NoiseStream stream(task.seed, 1, 4, 0);
  std::vector<float> noise(static_cast<size_t>(kBatch) * kDims);
  for (int u = 0; u < 2; ++u) {
    stream.Fill(noise.data(), static_cast<std::int64_t>(noise.size()));
    for (int k = 0; k < kDims; ++k) {
      double sum = 0;
      for (int b = 0; b < kBatch; ++b) sum += std::pow(task.scale[k] * noise[b * kDims + k], 2);
      a[k] -= 2 * options.lr / kBatch * sum * (a[k] - task.target[k]);
    }
  }
  const TrainerState state = (*trainer)->Save();
  for (int k = 0; k < kDims; ++k) EXPECT_NEAR(state.parameters[k], a[k], 1e-13);
}

TEST(LinearTrainer, ResultsDoNotDependOnWhatTrainsTogetherOrOnThreads) {
  for (const char* draws : {"samples", "chi2", "fixed"}) {
    for (const int d : {1, 200}) {
      TrainerOptions options = MakeOptions(100, 60, {{"draws", draws}, {"optimizer", "adam"}});
      std::vector<MergeTask> tasks;
      tasks.reserve(5);
      for (int i = 0; i < 5; ++i) tasks.push_back(RandomTask({2 * i + 1, 2 * i + 2}, d, i));
      tasks[4].range = tasks[3].range;  // another trial of the same merge
      tasks[4].seed = 77;
      options.threads = 1;
      const TrainerState together = TrainToEnd(tasks, options);
      for (const int threads : {2, 3}) {
        options.threads = threads;
        ExpectSame(TrainToEnd(tasks, options), together, draws);
      }
      for (size_t i = 0; i < tasks.size(); ++i) {
        const TrainerState alone = TrainToEnd({tasks[i]}, options);
        const auto begin = together.parameters.begin() + static_cast<std::ptrdiff_t>(i * d);
        EXPECT_TRUE(std::equal(alone.parameters.begin(), alone.parameters.end(), begin));
        const auto curve = together.curve.begin() +
                           static_cast<std::ptrdiff_t>(i * CurveUpdates(options.updates).size());
        EXPECT_TRUE(std::equal(alone.curve.begin(), alone.curve.end(), curve));
      }
    }
  }
}

TEST(LinearTrainer, GoesOnFromEverySavedState) {
  std::vector<Options> recipes = Recipes();
  recipes.push_back({{"draws", "chi2"}});
  for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
    for (const Options& recipe : recipes) {
      TrainerOptions options = MakeOptions(1024, 13, recipe);
      options.dtype = dtype;
      const int d = options.recipe.draws == Draws::kSamples ? 256 : 40000;
      const std::vector<MergeTask> tasks = {RandomTask({1, 2}, d, 2), RandomTask({3, 7}, d, 3)};
      auto whole = MakeLinearTrainer(tasks, options);
      ASSERT_TRUE(whole.ok()) << whole.status();
      std::vector<TrainerState> states = {(*whole)->Save()};
      while (!(*whole)->done()) {
        ASSERT_TRUE((*whole)->Advance().ok());
        states.push_back((*whole)->Save());
      }
      if (options.recipe.draws != Draws::kFixed) {
        ASSERT_GT(states.size(), 5u) << Name(recipe);
      }
      const size_t stride = std::max<size_t>(1, states.size() / 4);
      for (size_t s = 0; s < states.size(); s += stride) {
        auto resumed = MakeLinearTrainer(tasks, options);
        ASSERT_TRUE(resumed.ok());
        ASSERT_TRUE((*resumed)->Restore(states[s]).ok());
        ExpectSame(::mergeplan::testing::RunToEnd(std::move(resumed)), states.back(), Name(recipe));
      }
    }
  }
}

TEST(LinearTrainer, RefusesAStateOfAnotherTraining) {
  const TrainerOptions options = MakeOptions(8, 20, {{"optimizer", "adam"}});
  auto trainer = MakeLinearTrainer({RandomTask({1, 2}, 4, 1)}, options);
  ASSERT_TRUE(trainer.ok());
  const TrainerState good = (*trainer)->Save();
  TrainerState state = good;
  state.parameters.pop_back();
  EXPECT_EQ((*trainer)->Restore(state).code(), absl::StatusCode::kDataLoss);
  state = good;
  state.updates = 21;
  EXPECT_EQ((*trainer)->Restore(state).code(), absl::StatusCode::kDataLoss);
  state = good;
  state.second.clear();
  const absl::Status status = (*trainer)->Restore(state);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("0 second moments"));
  state = good;
  state.average = good.parameters;  // of a recipe with an average
  EXPECT_EQ((*trainer)->Restore(state).code(), absl::StatusCode::kDataLoss);
}

TEST(LinearTrainer, StopsWhereTheLossIsNoFiniteNumberAndKeepsTheLastGoodState) {
  TrainerOptions options = MakeOptions(4, 100000);
  options.lr = 1e4;  // far beyond what Budget::Validate lets through
  auto trainer = MakeLinearTrainer({RandomTask({3, 9}, 400, 1)}, options);
  ASSERT_TRUE(trainer.ok());
  absl::Status status;
  while (status.ok() && !(*trainer)->done()) status = (*trainer)->Advance();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), ::testing::AllOf(HasSubstr("merge [3, 9]"), HasSubstr("rate 10000"),
                                                 HasSubstr("update")));
  for (const double a : (*trainer)->Save().parameters) EXPECT_TRUE(std::isfinite(a));
}

TEST(LinearTrainer, RefusesNumbersThatMakeNoSense) {
  const MergeTask task = RandomTask({1, 2}, 4, 1);
  const auto expect = [](std::vector<MergeTask> tasks, const TrainerOptions& options,
                         const std::string& text) {
    const absl::Status status = MakeLinearTrainer(std::move(tasks), options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(status.message(), HasSubstr(text));
  };
  const TrainerOptions good = MakeOptions(8, 20);
  expect({}, good, "no merges");
  expect({task}, MakeOptions(0, 20), "batch = 0");
  expect({task}, MakeOptions(8, 0), "updates = 0");
  TrainerOptions options = good;
  options.lr = std::numeric_limits<double>::quiet_NaN();
  expect({task}, options, "lr = nan");
  options = MakeOptions(std::numeric_limits<int>::max(), std::int64_t{1} << 40);
  expect({task}, options, "more than a stream of noise has");
  expect({task}, MakeOptions(8, 20, {{"warmup", "21"}}), "--warmup 21");
  options = MakeOptions(8, 20, {{"student", "embedding"}});
  options.feature_norm = 31;
  expect({task}, options, "--feature-norm 31");
  MergeTask broken = task;
  broken.start[2] = std::numeric_limits<double>::infinity();
  expect({broken}, good, "NaN or infinity");
  broken = task;
  broken.scale.pop_back();
  expect({task, broken}, good, "expected 4 each");
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

}  // namespace
}  // namespace mergeplan
