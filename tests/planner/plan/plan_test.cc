#include "planner/plan/plan.h"

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planner/plan/random_plan.h"

namespace mergeplan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// (1 (2 (3..5))) (6 7) 8, in no order
std::vector<MergeSpec> Example() {
  return {{{1, 5}, {{1, 1}, {2, 5}}},
          {{6, 7}, {{6, 6}, {7, 7}}},
          {{2, 5}, {{2, 2}, {3, 5}}},
          {{3, 5}, {{3, 3}, {4, 4}, {5, 5}}}};
}
const std::vector<Range> kExampleBlocks = {{1, 5}, {6, 7}, {8, 8}};

TEST(PlanTest, CanonicalOrderRoundsAndText) {
  const auto plan = Plan::Create(8, Example(), kExampleBlocks);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->teacher_steps(), 8);
  EXPECT_EQ(plan->student_steps(), 3);
  EXPECT_EQ(plan->size(), 4);
  EXPECT_EQ(plan->rounds(), 3);
  EXPECT_EQ(plan->ToString(), "(1 (2 (3..5))) (6 7) 8");
  EXPECT_THAT(plan->merges(), ElementsAre(Merge{3, 5, 1, {2, 3, 4}}, Merge{2, 5, 2, {1, 8}},
                                          Merge{1, 5, 3, {0, 9}}, Merge{6, 7, 1, {5, 6}}));
  EXPECT_THAT(plan->blocks(), ElementsAre(10, 11, 7));
  EXPECT_EQ(plan->BlockRanges(), kExampleBlocks);
  EXPECT_THAT(plan->MergesByRound(),
              ElementsAre(IsEmpty(), ElementsAre(0, 3), ElementsAre(1), ElementsAre(2)));
  EXPECT_TRUE(plan->is_step(7));
  EXPECT_FALSE(plan->is_step(8));
  EXPECT_EQ(plan->range(7), (Range{8, 8}));
  EXPECT_EQ(plan->range(10), (Range{1, 5}));
}

TEST(PlanTest, TextOfRunsAndNeighbours) {
  const auto vanilla = Plan::Create(32,
                                    std::vector<MergeSpec>{{{1, 32},
                                                            [] {
                                                              std::vector<Range> steps;
                                                              for (int t = 1; t <= 32; ++t)
                                                                steps.push_back({t, t});
                                                              return steps;
                                                            }()}},
                                    std::vector<Range>{{1, 32}});
  ASSERT_TRUE(vanilla.ok());
  EXPECT_EQ(vanilla->ToString(), "(1..32)");
  const auto mixed =
      Plan::Create(6,
                   std::vector<MergeSpec>{{{1, 6}, {{1, 1}, {2, 2}, {3, 4}, {5, 5}, {6, 6}}},
                                          {{3, 4}, {{3, 3}, {4, 4}}}},
                   std::vector<Range>{{1, 6}});
  ASSERT_TRUE(mixed.ok());
  EXPECT_EQ(mixed->ToString(), "(1 2 (3 4) 5 6)");
}

TEST(PlanTest, OneStep) {
  const auto plan = Plan::Create(1, {}, std::vector<Range>{{1, 1}});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->size(), 0);
  EXPECT_EQ(plan->rounds(), 0);
  EXPECT_EQ(plan->student_steps(), 1);
  EXPECT_EQ(plan->ToString(), "1");
  EXPECT_EQ(plan->MergesByRound().size(), 1U);
}

TEST(PlanTest, NothingMerged) {
  const auto plan = Plan::Create(4, {}, std::vector<Range>{{1, 1}, {2, 2}, {3, 3}, {4, 4}});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->student_steps(), 4);
  EXPECT_EQ(plan->ToString(), "1..4");
}

TEST(PlanTest, BootOverAThousandSteps) {
  const int T = 1000;
  const auto plan = Plan::Create(T, BootSpecs(T), std::vector<Range>{{1, T}});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->size(), T - 1);
  EXPECT_EQ(plan->rounds(), T - 1);
  EXPECT_EQ(plan->merges().front().range(), (Range{T - 1, T}));
  EXPECT_EQ(plan->merges().back().range(), (Range{1, T}));
  EXPECT_THAT(plan->ToString(), ::testing::StartsWith("(1 (2 (3 (4 "));
  EXPECT_THAT(plan->ToString(), ::testing::EndsWith("(999 1000" + std::string(T - 1, ')')));
}

TEST(PlanTest, BootOverManySteps) {
  const int T = 200'000;
  const auto plan = Plan::Create(T, BootSpecs(T), std::vector<Range>{{1, T}});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->rounds(), T - 1);
  EXPECT_GT(plan->ToString().size(), static_cast<size_t>(T));
}

struct Wrong {
  const char* name;
  int T;
  std::vector<MergeSpec> merges;
  std::vector<Range> blocks;
  std::vector<const char*> words;  // all in the message
  int faulty;
};

class WrongPlanTest : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongPlanTest, IsRefusedWithTheReason) {
  const Wrong& wrong = GetParam();
  int faulty = -7;
  const auto plan = Plan::Create(wrong.T, wrong.merges, wrong.blocks, &faulty);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(plan.status().message());
  for (const char* word : wrong.words) EXPECT_THAT(message, HasSubstr(word));
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_EQ(faulty, wrong.faulty) << message;
}

constexpr int kMost = std::numeric_limits<int>::max();
constexpr int kLeast = std::numeric_limits<int>::min();

INSTANTIATE_TEST_SUITE_P(
    Kinds, WrongPlanTest,
    ::testing::Values(
        Wrong{"NoSteps", 0, {}, {{1, 1}}, {"teacher_steps is 0"}, -1},
        Wrong{"NegativeSteps", -3, {}, {}, {"teacher_steps is -3"}, -1},
        Wrong{"TooManySteps", kMost, {}, {{1, kMost}}, {"teacher_steps", "1000000"}, -1},
        Wrong{"NoBlocks", 3, {}, {}, {"blocks: none given"}, -1},
        Wrong{"BlockGapInside",
              5,
              {},
              {{1, 1}, {4, 4}, {5, 5}},
              {"blocks: gap, steps 2..3 are missing before [4, 4]"},
              -1},
        Wrong{"BlockGapOfOneStep",
              3,
              {},
              {{1, 1}, {3, 3}},
              {"blocks: gap, step 2 is missing before [3, 3]"},
              -1},
        Wrong{"BlockGapAtTheEnd",
              5,
              {},
              {{1, 1}, {2, 2}},
              {"blocks: gap, steps 3..5 are missing at the end of [1, 5]"},
              -1},
        Wrong{"BlockGapOfOneAtTheEnd",
              3,
              {},
              {{1, 1}, {2, 2}},
              {"blocks: gap, step 3 is missing at the end"},
              -1},
        Wrong{"BlockGapAtTheBeginning", 3, {}, {{2, 2}, {3, 3}}, {"gap, step 1 is missing"}, -1},
        Wrong{"BlockOverlap", 4, {}, {{1, 2}, {2, 4}}, {"blocks: overlap, [2, 4]", "step 2"}, -1},
        Wrong{"BlockBeyondTheEnd", 4, {}, {{1, 5}}, {"[1, 5] lies outside [1, 4]"}, -1},
        Wrong{"BlockFarBeyond", 4, {}, {{1, kMost}}, {"lies outside [1, 4]"}, -1},
        Wrong{"BlockBeforeTheBeginning", 4, {}, {{kLeast, 4}}, {"lies outside [1, 4]"}, -1},
        Wrong{"BlockBackwards", 4, {}, {{3, 2}}, {"[3, 2] ends before it begins"}, -1},
        Wrong{"MergeOfOneStep",
              4,
              {{{2, 2}, {{2, 2}}}},
              {{1, 4}},
              {"merge [2, 2]", "expected first < last"},
              0},
        Wrong{"MergeBackwards", 4, {{{3, 2}, {{2, 2}}}}, {{1, 4}}, {"merge [3, 2]"}, 0},
        Wrong{"MergeOutside",
              4,
              {{{1, 4}, {{1, 2}, {3, 4}}}, {{4, 5}, {{4, 4}, {5, 5}}}},
              {{1, 4}},
              {"merge [4, 5]", "outside the teacher's steps [1, 4]"},
              1},
        Wrong{"NoChildren", 4, {{{1, 4}, {}}}, {{1, 4}}, {"merge [1, 4]: 0 children"}, 0},
        Wrong{"OneChild", 4, {{{1, 4}, {{1, 4}}}}, {{1, 4}}, {"1 children", "two or more"}, 0},
        Wrong{"ChildGap",
              4,
              {{{1, 4}, {{1, 1}, {3, 4}}}},
              {{1, 4}},
              {"merge [1, 4]: gap, step 2 is missing before [3, 4]"},
              0},
        Wrong{"ChildOverlap",
              4,
              {{{1, 4}, {{1, 3}, {2, 4}}}},
              {{1, 4}},
              {"merge [1, 4]: overlap, [2, 4]", "step 3"},
              0},
        Wrong{"ChildrenInTheWrongOrder",
              2,
              {{{1, 2}, {{2, 2}, {1, 1}}}},
              {{1, 2}},
              {"merge [1, 2]: gap, step 1"},
              0},
        Wrong{"ChildOutside",
              4,
              {{{1, 3}, {{1, 1}, {2, 4}}}},
              {{1, 4}},
              {"merge [1, 3]: [2, 4] lies outside [1, 3]"},
              0},
        Wrong{"ChildBackwards",
              4,
              {{{1, 4}, {{1, 1}, {3, 2}, {2, 4}}}},
              {{1, 4}},
              {"[3, 2] ends before it begins"},
              0},
        Wrong{"Twice",
              2,
              {{{1, 2}, {{1, 1}, {2, 2}}}, {{1, 2}, {{1, 1}, {2, 2}}}},
              {{1, 2}},
              {"merge [1, 2]: given twice"},
              1},
        Wrong{"MissingTop", 2, {}, {{1, 2}}, {"the blocks use [1, 2]", "no merge"}, -1},
        Wrong{"MissingChild",
              3,
              {{{1, 3}, {{1, 1}, {2, 3}}}},
              {{1, 3}},
              {"merge [1, 3] uses [2, 3]", "no merge with that range"},
              0},
        Wrong{"Unused",
              4,
              {{{1, 4}, {{1, 1}, {2, 2}, {3, 3}, {4, 4}}}, {{2, 3}, {{2, 2}, {3, 3}}}},
              {{1, 4}},
              {"merge [2, 3]", "no other merge and no block uses it"},
              1}),
    [](const auto& info) { return std::string(info.param.name); });

// Every plan is read back from its parts in any order, and these invariants hold.
TEST(PlanTest, RandomPlansSurviveShuffling) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    const int T = 1 + static_cast<int>(random() % 40);
    const RandomSpecs specs = RandomPlanSpecs(T, random);
    int faulty = 5;
    const auto plan = Plan::Create(T, specs.merges, specs.blocks, &faulty);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(faulty, -1);
    ASSERT_EQ(static_cast<size_t>(plan->size()), specs.merges.size());

    std::vector<MergeSpec> again = plan->Specs();
    std::shuffle(again.begin(), again.end(), random);
    const auto same = Plan::Create(T, again, plan->BlockRanges());
    ASSERT_TRUE(same.ok()) << same.status();
    ASSERT_EQ(*same, *plan);
    ASSERT_EQ(same->ToString(), plan->ToString());

    int merges_in_rounds = 0;
    for (const auto& ids : plan->MergesByRound()) merges_in_rounds += static_cast<int>(ids.size());
    ASSERT_EQ(merges_in_rounds, plan->size());
    for (int k = 0; k < plan->size(); ++k) {
      const Merge& merge = plan->merges()[k];
      int largest = 0;
      int next = merge.first;
      for (const int child : merge.children) {
        ASSERT_LT(child, T + k);  // children before parents
        ASSERT_EQ(plan->range(child).first, next);
        next = plan->range(child).last + 1;
        if (!plan->is_step(child)) largest = std::max(largest, plan->merges()[child - T].round);
      }
      ASSERT_EQ(next, merge.last + 1);
      ASSERT_EQ(merge.round, largest + 1);
    }
  }
}

// Taking one merge away, or moving one border, is always found out.
TEST(PlanTest, RandomDamageIsRefused) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 500; ++round) {
    const int T = 3 + static_cast<int>(random() % 20);
    RandomSpecs specs = RandomPlanSpecs(T, random);
    if (specs.merges.empty()) continue;
    RandomSpecs without = specs;
    without.merges.erase(without.merges.begin() +
                         static_cast<int>(random() % without.merges.size()));
    EXPECT_FALSE(Plan::Create(T, without.merges, without.blocks).ok());
    MergeSpec& merge = specs.merges[random() % specs.merges.size()];
    Range& child = merge.children[random() % merge.children.size()];
    (random() % 2 == 0 ? child.first : child.last) += random() % 2 == 0 ? 1 : -1;
    EXPECT_FALSE(Plan::Create(T, specs.merges, specs.blocks).ok());
  }
}

TEST(PlanBuilderTest, BuildsFromTheBottom) {
  PlanBuilder builder(4);
  const Range noisy = builder.Merge({PlanBuilder::Step(3), PlanBuilder::Step(4)});
  const Range top = builder.Merge({PlanBuilder::Step(1), PlanBuilder::Step(2), noisy});
  const auto plan = builder.Finish(std::vector<Range>{top});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->ToString(), "(1 2 (3 4))");
}

TEST(PlanBuilderTest, WrongUseIsAnErrorAtTheEnd) {
  PlanBuilder builder(4);
  builder.Merge({});
  EXPECT_FALSE(builder.Finish(std::vector<Range>{{1, 4}}).ok());
  PlanBuilder gap(4);
  EXPECT_FALSE(
      gap.Finish(std::vector<Range>{gap.Merge({PlanBuilder::Step(1), PlanBuilder::Step(4)})}).ok());
}

}  // namespace
}  // namespace mergeplan
