#include "planner/measured/chains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/operators/canonical.h"

namespace mergeplan {
namespace {

std::vector<std::string> Texts(const std::vector<Plan>& plans) {
  std::vector<std::string> out;
  for (const Plan& plan : plans) out.push_back(plan.ToString());
  return out;
}

TEST(Chains, NeighboursOfAChain) {
  // (1 2 (3 4 5)): the inner merge can begin at 2 or 4, go, or be parted; the outer one as well.
  const std::vector<MergeSpec> merges = {{{3, 5}, {{3, 3}, {4, 4}, {5, 5}}},
                                         {{1, 5}, {{1, 1}, {2, 2}, {3, 5}}}};
  const auto plan = Plan::Create(5, merges, {{{1, 5}}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Texts(NeighboursOf(*plan)),
              testing::UnorderedElementsAre("(1..5)", "(1 (2..5))", "(1..3 (4 5))",
                                            "(1 (2 (3..5)))", "(1 2 (3 (4 5)))"));
}

TEST(Chains, BordersOfBlocksMove) {
  const auto plan = Plan::Create(4, {{{2, 4}, {{2, 2}, {3, 3}, {4, 4}}}}, {{1, 1}, {2, 4}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Texts(NeighboursOf(*plan)),
              testing::UnorderedElementsAre("1 (2 (3 4))", "(1 2) (3 4)", "(1..3) 4"));
}

TEST(Chains, OtherPlansHaveNone) {
  EXPECT_TRUE(NeighboursOf(*CanonicalPlan(Strategy::kConsistency, 5)).empty());
  EXPECT_TRUE(NeighboursOf(*CanonicalPlan(Strategy::kProgressive, 8)).empty());
  EXPECT_FALSE(NeighboursOf(*CanonicalPlan(Strategy::kBoot, 5)).empty());
  EXPECT_TRUE(NeighboursOf(*CanonicalPlan(Strategy::kVanilla, 2)).empty());
}

}  // namespace
}  // namespace mergeplan
