#include "adapters/cases/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "planner/operators/canonical.h"
#include "planner/operators/law.h"
#include "planner/runs/curve_updates.h"
#include "tests/adapters/support.h"

namespace mergeplan {
namespace {

using ::mergeplan::testing::LogSpaced;
using ::mergeplan::testing::MakeModel;
using ::testing::HasSubstr;

Plan Canonical(Strategy strategy, int steps, int blocks = 1) {
  absl::StatusOr<Plan> plan = CanonicalPlan(strategy, steps, blocks);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

Executor MakeExecutor(const Model& model, const Plan& plan, ExecutorOptions options = {}) {
  absl::StatusOr<Executor> executor = Executor::Create(model, plan, std::move(options));
  EXPECT_TRUE(executor.ok()) << executor.status();
  return *std::move(executor);
}

// Round by round, as the plugins do it.
absl::Status TrainAll(Executor& executor) {
  for (const std::vector<int>& round : executor.plan().MergesByRound()) {
    if (absl::Status status = executor.Train(round); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// Children are independent, so the mean of every node's value over many trials is what the model
// predicts, for every start and every shape of plan. Every dimension is a trial.
TEST(Executor, MeansAreWhatTheModelPredictsForAllStarts) {
  constexpr int kTrials = 4000, kSteps = 5;
  for (const Init init : {Init::kChild, Init::kTeacher, Init::kJump, Init::kChildJump}) {
    for (const double lambda : {0.3, 2.5}) {
      const Model model = MakeModel(kSteps, std::vector<double>(kTrials, lambda),
                                    Budget::Sgd(0.05, 6, /*batch=*/4), init);
      for (const Strategy strategy : kStrategies) {
        const Plan plan = Canonical(strategy, kSteps);
        Executor executor = MakeExecutor(model, plan);
        ASSERT_TRUE(TrainAll(executor).ok());
        for (int m = 0; m < plan.size(); ++m) {
          const std::vector<double>& value = executor.records()[m].value;
          const double mean = std::accumulate(value.begin(), value.end(), 0.0) / kTrials;
          double squares = 0;
          for (const double v : value) squares += (v - mean) * (v - mean);
          const double standard_error = std::sqrt(squares / (kTrials - 1.0) / kTrials);
          const double predicted = executor.predicted(kSteps + m)[0];
          // 160 comparisons; 5 standard errors are 6e-7 each under the normal law.
          EXPECT_LT(std::abs(mean - predicted), 5 * standard_error)
              << std::string(ToString(init)) << ", lambda " << lambda << ", "
              << std::string(ToString(strategy)) << ", merge " << m;
        }
      }
    }
  }
}

// With a huge batch the noise is gone and every single value is the model's, up to the law's
// spread.
TEST(Executor, HugeBatchesGiveTheModelsValues) {
  constexpr int kBatch = 400000;
  const std::vector<double> variances = {0.05, 0.9, 1.02, 6.0};
  for (const Init init : {Init::kChild, Init::kTeacher, Init::kJump, Init::kChildJump}) {
    const Model model = MakeModel(4, variances, Budget::Sgd(0.03, 3, kBatch), init);
    for (const Strategy strategy : kStrategies) {
      const Plan plan = Canonical(strategy, 4);
      Executor executor = MakeExecutor(model, plan);
      ASSERT_TRUE(TrainAll(executor).ok());
      for (int m = 0; m < plan.size(); ++m) {
        const absl::Span<const double> predicted = executor.predicted(4 + m);
        for (size_t k = 0; k < variances.size(); ++k) {
          // g <= 0.36, k = 3: a standard deviation of at most 0.003 of what is left to learn.
          EXPECT_NEAR(executor.records()[m].value[k], predicted[k], 0.01)
              << std::string(ToString(init)) << ", merge " << m << ", dimension " << k;
        }
      }
    }
  }
}

// The whole student against draws of the exact law through the tree: p-values of all dimensions,
// strategies and starts together, Holm at 1 %. The same runs with a rate that is 5 % off must fail.
TEST(Executor, StudentsAreDrawsOfTheExactLaw) {
  constexpr int kSteps = 8;
  const std::vector<double> variances = LogSpaced(0.1, 6.0, 48);
  for (const double error : {1.0, 1.05}) {
    std::vector<double> p_values;
    for (const Init init : {Init::kChild, Init::kTeacher, Init::kJump, Init::kChildJump}) {
      const Model law_model = MakeModel(kSteps, variances, Budget::Sgd(0.01, 320, 64), init);
      const Model run_model =
          MakeModel(kSteps, variances, Budget::Sgd(0.01 * error, 320, 64), init);
      const absl::StatusOr<LawTest> law = LawTest::Create(law_model, kSteps - 1);
      ASSERT_TRUE(law.ok()) << law.status();
      for (const Strategy strategy : kStrategies) {
        const Plan plan = Canonical(strategy, kSteps);
        Executor executor = MakeExecutor(run_model, plan);
        ASSERT_TRUE(TrainAll(executor).ok());
        const auto p = law->PValues(plan, executor.Value());
        ASSERT_TRUE(p.ok()) << p.status();
        p_values.insert(p_values.end(), p->begin(), p->end());
      }
    }
    EXPECT_EQ(p_values.size(), 16 * variances.size());
    const std::vector<bool> rejected = HolmReject(p_values, 0.01);
    const auto count = std::count(rejected.begin(), rejected.end(), true);
    if (error == 1.0) {
      EXPECT_EQ(count, 0) << "least p " << *std::min_element(p_values.begin(), p_values.end());
    } else {
      EXPECT_GT(count, 50);
    }
  }
}

TEST(Executor, StartsAreThoseOfTheDesign) {
  // A rate so small that nothing moves shows where each merge starts.
  const std::vector<double> variances = {0.2, 3.0};
  const auto start = [&](Init init) {
    const Model model = MakeModel(3, variances, Budget::Sgd(1e-14, 1, 2), init);
    const auto plan =
        Plan::Create(3, {{{1, 3}, {{1, 1}, {2, 3}}}, {{2, 3}, {{2, 2}, {3, 3}}}}, {{1, 3}});
    EXPECT_TRUE(plan.ok()) << plan.status();
    Executor executor = MakeExecutor(model, *plan);
    EXPECT_TRUE(TrainAll(executor).ok());
    return executor.records();  // [2,3], then [1,3]
  };
  const Schedule s = CosineSchedule(3);
  for (size_t k = 0; k < variances.size(); ++k) {
    const double lambda = variances[k];
    const auto jump = [&](int i, int j) {
      return (s.alpha[i - 1] * s.alpha[j] * lambda + s.sigma[i - 1] * s.sigma[j]) /
             (s.alpha[j] * s.alpha[j] * lambda + s.sigma[j] * s.sigma[j]);
    };
    EXPECT_NEAR(start(Init::kChild)[1].value[k], jump(3, 3), 1e-10);
    EXPECT_NEAR(start(Init::kTeacher)[1].value[k], jump(3, 3), 1e-10);
    EXPECT_NEAR(start(Init::kJump)[0].value[k], jump(2, 3), 1e-10);
    EXPECT_NEAR(start(Init::kJump)[1].value[k], jump(1, 3), 1e-10);
    // An untouched x0 estimate of the teacher's, used for a longer jump, is still the teacher's.
    EXPECT_NEAR(start(Init::kChildJump)[1].value[k], jump(1, 3), 1e-10);
  }
}

TEST(Executor, TrainsNothingWhereThereIsNothingToMerge) {
  const Model model = MakeModel(1, {0.5, 2.0}, Budget::Sgd(0.01, 5, 4));
  const auto plan = Plan::Create(1, {}, {{1, 1}});
  ASSERT_TRUE(plan.ok());
  Executor executor = MakeExecutor(model, *plan);
  EXPECT_TRUE(TrainAll(executor).ok());
  EXPECT_EQ(executor.merges_trained(), 0);
  EXPECT_EQ(executor.Value(), std::vector<double>(model.A(1).begin(), model.A(1).end()));
}

TEST(Executor, BlocksMultiplyAndSingleStepsStay) {
  const Model model = MakeModel(5, {0.5, 2.0}, Budget::Sgd(0.05, 200, 64));
  // Blocks [1], [2,3] and [4,5].
  const auto plan = Plan::Create(5, {{{2, 3}, {{2, 2}, {3, 3}}}, {{4, 5}, {{4, 4}, {5, 5}}}},
                                 {{1, 1}, {2, 3}, {4, 5}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  Executor executor = MakeExecutor(model, *plan);
  // As it stands before training: the teacher.
  for (size_t k = 0; k < 2; ++k) {
    EXPECT_NEAR(executor.Value()[k], executor.TeacherComposite({1, 5})[k], 1e-15);
  }
  ASSERT_TRUE(TrainAll(executor).ok());
  for (size_t k = 0; k < 2; ++k) {
    EXPECT_DOUBLE_EQ(executor.Value()[k], model.A(1)[k] * executor.records()[0].value[k] *
                                              executor.records()[1].value[k]);
  }
}

TEST(Executor, RecordsWhatAMergeDid) {
  const int kUpdates = 100, kBatch = 8;
  const Model model = MakeModel(4, LogSpaced(0.2, 4.0, 20), Budget::Sgd(0.05, kUpdates, kBatch));
  const auto plan =
      Plan::Create(4, {{{1, 4}, {{1, 1}, {2, 2}, {3, 4}}}, {{3, 4}, {{3, 3}, {4, 4}}}}, {{1, 4}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  Executor executor = MakeExecutor(model, *plan);
  ASSERT_TRUE(TrainAll(executor).ok());
  EXPECT_EQ(executor.merges_trained(), 2);
  const TrainedMerge& record = executor.records()[1];
  EXPECT_EQ(record.updates, kUpdates);
  EXPECT_EQ(record.teacher_calls, 2 * kUpdates * kBatch);  // two of its three children are steps
  EXPECT_EQ(record.curve.size(), CurveUpdates(kUpdates).size());
  EXPECT_GT(record.seconds, 0);
  // Expected losses by their definition.
  double before = 0, after = 0;
  for (int k = 0; k < 20; ++k) {
    const double child = executor.records()[0].value[k];
    const double target = model.A(1)[k] * model.A(2)[k] * child;
    before += model.n(4)[k] * (child - target) * (child - target);
    after += model.n(4)[k] * (record.value[k] - target) * (record.value[k] - target);
  }
  EXPECT_NEAR(record.initial_loss, before, 1e-12 * before);
  EXPECT_NEAR(record.final_loss, after, 1e-12 * before);
  EXPECT_NEAR(record.residual(), after / before, 1e-10);
  EXPECT_LT(record.residual(), 0.5);
  // The first batch's loss is a sample of the first of them: its relative spread is below 1 here.
  EXPECT_NEAR(record.curve.front(), before, before);
}

TEST(Executor, GivesTheSameInFloat32WithinItsPrecision) {
  const Model model = MakeModel(6, LogSpaced(0.1, 4.0, 40), Budget::Sgd(0.05, 100, 32));
  const Plan plan = Canonical(Strategy::kProgressive, 6);
  Executor doubles = MakeExecutor(model, plan);
  ExecutorOptions options;
  options.dtype = DType::kFloat32;
  Executor floats = MakeExecutor(model, plan, options);
  ASSERT_TRUE(TrainAll(doubles).ok());
  ASSERT_TRUE(TrainAll(floats).ok());
  double largest = 0;
  for (size_t k = 0; k < 40; ++k) {
    largest = std::max(largest, std::abs(doubles.Value()[k] - floats.Value()[k]));
  }
  EXPECT_LT(largest, 1e-5);
  EXPECT_GT(largest, 0);  // it is another arithmetic
}

TEST(Executor, PredictsWhereTheRecipeHasAMean) {
  const Model model = MakeModel(4, LogSpaced(0.2, 4.0, 6), Budget::Sgd(0.02, 60, 4000));
  const Plan plan = Canonical(Strategy::kBoot, 4);
  ExecutorOptions options;
  for (const std::map<std::string, std::string>& recipe :
       {std::map<std::string, std::string>{{"lr-schedule", "cosine"}, {"warmup", "9"}},
        std::map<std::string, std::string>{{"momentum", "0.7"}, {"ema", "0.9"}}}) {
    options.recipe = *Recipe::Parse(recipe);
    Executor executor = MakeExecutor(model, plan, options);
    ASSERT_TRUE(TrainAll(executor).ok());
    for (size_t k = 0; k < 6; ++k) {
      EXPECT_NEAR(executor.Value()[k], executor.PredictedValue()[k], 0.02);
      EXPECT_GT(std::abs(executor.PredictedValue()[k] - model.Value(plan)[k]), 1e-4);
    }
  }
  options.recipe = *Recipe::Parse({{"optimizer", "adamw"}, {"clip-norm", "1"}});
  Executor adam = MakeExecutor(model, plan, options);
  ASSERT_TRUE(TrainAll(adam).ok());
  for (const double v : adam.PredictedValue()) EXPECT_TRUE(std::isnan(v));
  for (const double v : adam.Value()) EXPECT_TRUE(std::isfinite(v));
  EXPECT_FALSE(adam.EffectiveTime(0).has_value());
  options.recipe = *Recipe::Parse({{"warmup", "61"}});
  EXPECT_THAT(Executor::Create(model, plan, options).status().message(), HasSubstr("--warmup 61"));
}

// What the model takes for the time of a merge is what a training took: k updates at rate lr are
// about s = k lr F.
TEST(Executor, FindsTheEffectiveTime) {
  const Model model = MakeModel(4, {0.3, 1.0, 2.0}, Budget::Sgd(0.0005, 1000, 500, 2.0));
  Executor executor = MakeExecutor(model, Canonical(Strategy::kProgressive, 4));
  EXPECT_FALSE(executor.EffectiveTime(0).has_value());  // not trained yet
  ASSERT_TRUE(TrainAll(executor).ok());
  for (int m = 0; m < 3; ++m) {
    const std::optional<double> s = executor.EffectiveTime(m);
    ASSERT_TRUE(s.has_value());
    EXPECT_NEAR(*s, 1.0, 0.02);
  }
}

TEST(Executor, CountsAccumulatedBatches) {
  const Model model = MakeModel(2, {0.5}, Budget::Sgd(0.05, 10, 8));
  ExecutorOptions options;
  options.recipe.accumulate = 3;
  Executor executor = MakeExecutor(model, Canonical(Strategy::kVanilla, 2), options);
  ASSERT_TRUE(TrainAll(executor).ok());
  EXPECT_EQ(executor.records()[0].updates, 10);
  EXPECT_EQ(executor.records()[0].teacher_calls, 2 * 10 * 8 * 3);
}

// Stops after a number of questions, as a signal would.
TEST(Executor, StopsAndGoesOnBitByBit) {
  const Model model = MakeModel(8, LogSpaced(0.1, 4.0, 128), Budget::Sgd(0.05, 24, 1024));
  for (const Strategy strategy : {Strategy::kProgressive, Strategy::kBoot}) {
    const Plan plan = Canonical(strategy, 8);
    Recipe recipe;
    if (strategy == Strategy::kBoot) {
      recipe = *Recipe::Parse({{"optimizer", "adamw"}, {"ema", "0.9"}, {"lr-schedule", "cosine"}});
    }
    ExecutorOptions plain;
    plain.recipe = recipe;
    Executor whole = MakeExecutor(model, plan, plain);
    ASSERT_TRUE(TrainAll(whole).ok());
    int stops = 0;
    for (const int patience : {0, 1, 3, 8}) {
      ExecutorState state;
      for (bool first = true, done = false; !done; first = false) {
        int questions = 0;
        ExecutorOptions options = plain;
        options.stop = [&] { return questions++ >= (first ? patience : patience + 2); };
        Executor executor = MakeExecutor(model, plan, options);
        if (!first) {
          ASSERT_TRUE(executor.Restore(state).ok());
        }
        const absl::Status status = TrainAll(executor);
        done = status.ok();
        if (!done) {
          ASSERT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
          ++stops;
        }
        state = executor.Save();
        EXPECT_EQ(state.active.merges.empty(), done);
      }
      for (int m = 0; m < plan.size(); ++m) {
        EXPECT_EQ(state.merges[m].value, whole.records()[m].value) << m;
        EXPECT_EQ(state.merges[m].curve, whole.records()[m].curve) << m;
        EXPECT_EQ(state.merges[m].final_loss, whole.records()[m].final_loss) << m;
      }
    }
    EXPECT_GT(stops, 20);
  }
}

TEST(Executor, RefusesWhatItCannotDo) {
  const Model flow = MakeModel(4, {0.5}, Budget::Flow(1.6));
  const Plan plan = Canonical(Strategy::kBoot, 4);
  EXPECT_THAT(Executor::Create(flow, plan, {}).status().message(), HasSubstr("--iterations"));
  const Model model = MakeModel(4, {0.5}, Budget::Sgd(0.05, 10, 4));
  EXPECT_EQ(Executor::Create(model, Canonical(Strategy::kBoot, 5), {}).status().code(),
            absl::StatusCode::kInvalidArgument);

  Executor executor = MakeExecutor(model, plan);
  const absl::Status early = executor.Train({plan.size() - 1});
  EXPECT_EQ(early.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(early.message(), HasSubstr("[2, 4] has not been trained"));
  EXPECT_EQ(executor.Train({99}).code(), absl::StatusCode::kNotFound);
  ExecutorState state = executor.Save();
  state.merges.pop_back();
  EXPECT_EQ(executor.Restore(state).code(), absl::StatusCode::kDataLoss);
}

TEST(Executor, ReportsProgressAndOffersCheckpoints) {
  const Model model = MakeModel(4, LogSpaced(0.1, 4.0, 300), Budget::Sgd(0.05, 50, 512));
  const Plan plan = Canonical(Strategy::kVanilla, 4);
  ExecutorOptions options;
  std::vector<std::int64_t> done;
  int checkpoints = 0;
  options.progress = [&](const TrainingProgress& p) {
    EXPECT_EQ(p.updates_total, 50);
    EXPECT_EQ(p.first_of_group, (Range{1, 4}));
    done.push_back(p.updates_done);
  };
  options.checkpoint = [&](const Executor& e, bool forced) {
    EXPECT_FALSE(forced);
    const ExecutorState state = e.Save();
    EXPECT_EQ(state.active.merges.empty(), state.merges[0].trained);
    ++checkpoints;
    return absl::OkStatus();
  };
  Executor executor = MakeExecutor(model, plan, options);
  ASSERT_TRUE(TrainAll(executor).ok());
  EXPECT_GT(done.size(), 2u);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), 50);
  EXPECT_EQ(checkpoints, static_cast<int>(done.size()));
}

}  // namespace
}  // namespace mergeplan
