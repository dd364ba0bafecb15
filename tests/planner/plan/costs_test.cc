#include "planner/plan/costs.h"

#include "gtest/gtest.h"
#include "planner/plan/plan.h"

namespace mergeplan {
namespace {

Plan Built(int steps, const std::vector<MergeSpec>& merges, const std::vector<Range>& blocks) {
  const absl::StatusOr<Plan> plan = Plan::Create(steps, merges, blocks);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *plan;
}

TEST(CostsTest, AMergeOfStepsCallsTheTeacherOncePerStep) {
  const Plan vanilla = Built(5, {{{1, 5}, {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}}}}, {{1, 5}});
  EXPECT_EQ(CostsOf(vanilla), (PlanCosts{1, 5, 0}));
}

TEST(CostsTest, ChildrenThatAreMergesAreCallsOfStudents) {
  const Plan chain =
      Built(4, {{{3, 4}, {{3, 3}, {4, 4}}}, {{2, 4}, {{2, 2}, {3, 4}}}, {{1, 4}, {{1, 1}, {2, 4}}}},
            {{1, 4}});
  EXPECT_EQ(CostsOf(chain), (PlanCosts{3, 4, 2}));
  const Plan pairs =
      Built(4, {{{1, 2}, {{1, 1}, {2, 2}}}, {{3, 4}, {{3, 3}, {4, 4}}}, {{1, 4}, {{1, 2}, {3, 4}}}},
            {{1, 4}});
  EXPECT_EQ(CostsOf(pairs), (PlanCosts{2, 4, 2}));
}

TEST(CostsTest, StepsThatStayBlocksCostNothing) {
  EXPECT_EQ(CostsOf(Built(3, {}, {{1, 1}, {2, 2}, {3, 3}})), (PlanCosts{0, 0, 0}));
  EXPECT_EQ(CostsOf(Built(3, {{{2, 3}, {{2, 2}, {3, 3}}}}, {{1, 1}, {2, 3}})),
            (PlanCosts{1, 2, 0}));
}

}  // namespace
}  // namespace mergeplan
