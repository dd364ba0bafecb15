#include "adapters/linear/trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "adapters/linear/mean.h"
#include "planner/operators/canonical.h"
#include "planner/operators/law.h"
#include "tests/adapters/linear/support.h"

namespace mergeplan {
namespace {

using ::mergeplan::testing::MakeModel;
using ::testing::HasSubstr;

TEST(TrainTrials, EveryTrialIsARunOfItsOwn) {
  const Model model = MakeModel(8, {0.2, 1.0, 3.0}, Budget::Sgd(0.02, 40, 16));
  for (const Strategy strategy : kStrategies) {
    const Plan plan = *CanonicalPlan(strategy, 8, 2);
    const auto together = TrainTrials(model, plan, {4, 9, 1}, {});
    ASSERT_TRUE(together.ok()) << together.status();
    ASSERT_EQ(together->size(), 9u);
    const auto alone = TrainTrials(model, plan, {9}, {});
    ASSERT_TRUE(alone.ok());
    EXPECT_TRUE(std::equal(alone->begin(), alone->end(), together->begin() + 3));
    EXPECT_NE((*together)[0], (*together)[3]);
  }
}

// The whole student of every strategy and start, drawn by samples and by batch sums, against draws
// of the exact law through the tree: all p-values together, Holm at 1 %. A rate that is 5 % off
// fails.
TEST(TrainTrials, StudentsAreDrawsOfTheExactLaw) {
  constexpr int kSteps = 8;
  const std::vector<double> variances = {0.05, 0.2, 0.5, 0.9, 1.02, 2.0, 5.0, 10.0};
  const std::vector<std::uint64_t> seeds = {1, 2, 3};
  for (const double error : {1.0, 1.05}) {
    std::vector<double> p_values;
    for (const Init init : {Init::kChild, Init::kTeacher, Init::kJump, Init::kChildJump}) {
      const Model law_model = MakeModel(kSteps, variances, Budget::Sgd(0.01, 320, 64), init);
      const Model run_model =
          MakeModel(kSteps, variances, Budget::Sgd(0.01 * error, 320, 64), init);
      const absl::StatusOr<LawTest> law = LawTest::Create(law_model, kSteps - 1);
      ASSERT_TRUE(law.ok()) << law.status();
      for (const Strategy strategy : kStrategies) {
        const Plan plan = *CanonicalPlan(strategy, kSteps);
        for (const Draws draws : {Draws::kSamples, Draws::kChi2}) {
          TrainerOptions options;
          options.recipe.draws = draws;
          const auto values = TrainTrials(run_model, plan, seeds, options);
          ASSERT_TRUE(values.ok()) << values.status();
          const auto p = law->PValues(plan, *values);
          ASSERT_TRUE(p.ok()) << p.status();
          p_values.insert(p_values.end(), p->begin(), p->end());
        }
      }
    }
    EXPECT_EQ(p_values.size(), 32 * seeds.size() * variances.size());
    const std::vector<bool> rejected = HolmReject(p_values, 0.01);
    const auto count = std::count(rejected.begin(), rejected.end(), true);
    if (error == 1.0) {
      EXPECT_EQ(count, 0) << "least p " << *std::min_element(p_values.begin(), p_values.end());
    } else {
      EXPECT_GT(count, 50);
    }
  }
}

// Through whole plans: the mean of many trials is what PredictedNodeValues says.
TEST(PredictedNodeValues, AreTheMeansForEveryStart) {
  constexpr int kSteps = 5, kTrials = 4000;
  for (const Init init : {Init::kChild, Init::kTeacher, Init::kJump, Init::kChildJump}) {
    const Model model =
        MakeModel(kSteps, std::vector<double>(kTrials, 0.6), Budget::Sgd(0.03, 12, 4), init);
    TrainerOptions options = WithBudget({}, model.budget());
    options.recipe = *Recipe::Parse({{"lr-schedule", "cosine"}, {"momentum", "0.5"}});
    for (const Strategy strategy : kStrategies) {
      const Plan plan = *CanonicalPlan(strategy, kSteps);
      const auto values = TrainTrials(model, plan, {3}, options);
      ASSERT_TRUE(values.ok()) << values.status();
      double sum = 0, squares = 0;
      for (const double v : *values) sum += v;
      for (const double v : *values) squares += (v - sum / kTrials) * (v - sum / kTrials);
      const std::vector<double> predicted = PredictedNodeValues(model, plan, options);
      const double expected = predicted[static_cast<size_t>(plan.blocks()[0]) * kTrials];
      // 16 comparisons at 5 standard errors.
      EXPECT_LT(std::abs(sum / kTrials - expected), 5 * std::sqrt(squares) / kTrials)
          << std::string(ToString(init)) << ", " << std::string(ToString(strategy));
    }
  }
}

TEST(PredictedNodeValues, AreTheModelsForThePlainRecipeAndNoneForAdam) {
  const Model model = MakeModel(5, {0.2, 3.0}, Budget::Sgd(0.03, 50, 4));
  const Plan plan = *CanonicalPlan(Strategy::kBoot, 5);
  TrainerOptions options = WithBudget({}, model.budget());
  EXPECT_EQ(PredictedNodeValues(model, plan, options), model.NodeValues(plan));
  // The general way gives the same: a rate that is constant in another word.
  options.recipe.ema = 1e-300;
  const std::vector<double> general = PredictedNodeValues(model, plan, options);
  for (size_t k = 0; k < general.size(); ++k) {
    EXPECT_NEAR(general[k], model.NodeValues(plan)[k], 1e-13);
  }
  options.recipe = *Recipe::Parse({{"optimizer", "adam"}});
  const std::vector<double> none = PredictedNodeValues(model, plan, options);
  for (size_t k = 0; k < none.size(); ++k) EXPECT_EQ(std::isnan(none[k]), k >= 10);
}

TEST(TrainTrials, RefusesWhatItCannotDo) {
  const Plan plan = *CanonicalPlan(Strategy::kBoot, 4);
  const Model flow = MakeModel(4, {0.5}, Budget::Flow(1.6));
  EXPECT_THAT(TrainTrials(flow, plan, {1}, {}).status().message(), HasSubstr("--iterations"));
  const Model model = MakeModel(5, {0.5}, Budget::Sgd(0.05, 10, 4));
  EXPECT_THAT(TrainTrials(model, plan, {1}, {}).status().message(), HasSubstr("4 teacher steps"));
}

}  // namespace
}  // namespace mergeplan
