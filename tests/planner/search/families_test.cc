#include "planner/search/families.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/planner/search/problems.h"

namespace mergeplan::search {
namespace {

// The same plans, and the same objectives, as where every one of them is built.
TEST(Families, MixedPlansAreRatedAsTheyAreEvaluated) {
  std::mt19937_64 random(51);
  std::size_t looked = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const RandomProblem problem = MakeRandomProblem(random, {1, 24, 4, 1});
    SCOPED_TRACE(problem.text);
    const absl::StatusOr<Model> model = Model::Create(problem.model);
    if (!model.ok()) continue;
    for (const bool nary : {true, false}) {
      std::vector<Plan> plans;
      SimplePlans(model->steps(), 1, nary, [&](Plan plan) {
        plans.push_back(std::move(plan));
        return true;
      });
      const std::vector<MixedPlan> rated = RateMixedPlans(*model, nary, nullptr);
      ASSERT_EQ(plans.size(), rated.size() + 4);
      double last = 0;
      for (const MixedPlan& mixed : rated) {
        ++looked;
        const absl::StatusOr<Plan> plan = Build(mixed, model->steps());
        ASSERT_TRUE(plan.ok()) << plan.status();
        EXPECT_NE(std::find(plans.begin() + 4, plans.end(), *plan), plans.end());
        EXPECT_EQ(plan->size(), mixed.border);
        EXPECT_EQ(plan->rounds(), mixed.border);
        const std::vector<double> value = model->Value(*plan);
        EXPECT_NEAR(mixed.objective, model->Objective(value), model->Tolerance(value));
        EXPECT_GE(mixed.objective, last);
        last = mixed.objective;
      }
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(looked, 5000u);
}

TEST(Families, EndWhereTheyAreToldTo) {
  ModelSpec spec;
  spec.schedule = CosineSchedule(20);
  spec.variances = {1.1, 0.4};
  spec.budget = Budget::Flow(1.6);
  const Model model = *Model::Create(std::move(spec));
  EXPECT_TRUE(RateMixedPlans(model, true, [] { return true; }).empty());
  int offered = 0;
  SimplePlans(20, 1, true, [&](const Plan&) { return ++offered < 2; });
  EXPECT_EQ(offered, 2);
  SimplePlans(20, 1, true, [&](const Plan&) { return ++offered < 9; });
  EXPECT_EQ(offered, 9);
}

}  // namespace
}  // namespace mergeplan::search
