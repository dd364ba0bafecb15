#include "planner/measured/lead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "planner/operators/canonical.h"
#include "tests/planner/measured/cases.h"

namespace mergeplan {
namespace {

// Intervals of a relative width around the values of a random case.
MeasuredTables Widened(const RandomCase& c, double width) {
  MeasuredTables t = c.Tables();
  for (auto* entries : {&t.gain, &t.distance, &t.floor, &t.residual}) {
    for (MeasuredEntry& e : *entries) {
      e.low = e.value * (1 - width);
      e.high = e.value * (1 + width);
    }
  }
  for (MeasuredEntry& e : t.residual) e.high = std::min(1.0, e.high);
  return t;
}

TEST(Lead, IntervalsHoldEveryErrorWithinThem) {
  std::mt19937_64 random(1);
  int certain = 0, uncertain = 0;
  for (int n = 0; n < 60; ++n) {
    CaseKind kind;
    kind.steps = Pick(random, 3, 9);
    const auto model =
        MeasuredModel::Create(Widened(MakeCase(kind, random), n % 2 == 0 ? 0.2 : 0.01));
    ASSERT_TRUE(model.ok()) << model.status();
    MeasuredOptions options;
    options.student_steps = Pick(random, 1, 2);
    options.combine = n % 4 < 2 ? Combine::kSum : Combine::kRms;
    (n % 3 == 0 ? options.total_updates : options.updates) = 12;
    const auto result = SolveMeasured(*model, options);
    ASSERT_TRUE(result.ok()) << result.status();
    const auto lead = LeadOver(*model, options, *result, {200, 5});
    ASSERT_TRUE(lead.ok()) << lead.status();
    EXPECT_EQ(lead->error.value, result->error);
    ASSERT_EQ(lead->rivals.size(), 4U);
    std::vector<double> scenario;
    for (int k = 0; k < 50; ++k) {
      model->Draw(random, scenario);
      const double own =
          PlanError(*model, result->plan, result->updates, options.combine).At(scenario);
      EXPECT_GE(own, lead->error.low);
      EXPECT_LE(own, lead->error.high);
      for (const Rival& rival : lead->rivals) {
        if (!rival.affordable) continue;
        const double other =
            PlanError(*model, rival.plan, rival.updates, options.combine).At(scenario);
        EXPECT_GE(other, rival.error.low);
        EXPECT_LE(other, rival.error.high);
        if (rival.certain) {
          EXPECT_LT(own, other);
        }
      }
    }
    double least = 1;
    for (const Rival& rival : lead->rivals) {
      if (!rival.affordable) continue;
      EXPECT_GE(rival.error.value, result->error * (1 - 1e-12)) << rival.name;
      EXPECT_LE(rival.better + rival.equal, 1);
      if (rival.is_the_plan) {
        EXPECT_EQ(rival.equal, 1);
        EXPECT_FALSE(rival.certain);
      }
      if (rival.certain) {
        EXPECT_EQ(rival.better, 1);
      }
      (rival.certain ? certain : uncertain)++;
      least = std::min(least, rival.better + rival.equal);
    }
    EXPECT_LE(lead->best_of_all, least);
  }
  EXPECT_GT(certain, 20);
  EXPECT_GT(uncertain, 20);
}

// One number decides: the share of draws is that of its interval.
TEST(Lead, DrawsCountWhatTheIntervalSays) {
  MeasuredTables t;
  t.teacher_steps = 3;
  t.gain = {{1, 1, 0, 0, 1, 1, 1}, {2, 2, 0, 0, 1, 1, 1}, {1, 2, 0, 0, 1, 1, 1}};
  t.floor = {{1, 2, 0, 0, 0, 0, 0}, {2, 3, 0, 0, 0, 0, 0}, {1, 3, 0, 0, 0, 0, 0}};
  t.residual = {{1, 2, 0, 1, 1, 1, 1}, {2, 3, 0, 1, 1, 1, 1}, {1, 3, 0, 1, 1, 1, 1}};
  // BOOT (1 (2 3)): 1 + d; vanilla: 3. d is 1 in 0..4: of the half above 1, 2 of 3 are above 2.
  t.distance = {
      {1, 2, 0, 0, 5, 5, 5}, {2, 3, 0, 0, 1, 0, 4}, {1, 3, 2, 0, 1, 1, 1}, {1, 3, 3, 0, 3, 3, 3}};
  const auto model = MeasuredModel::Create(t);
  ASSERT_TRUE(model.ok()) << model.status();
  MeasuredOptions options;
  options.updates = 1;
  const auto result = SolveMeasured(*model, options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->plan, *CanonicalPlan(Strategy::kBoot, 3));
  const LeadOptions draws{20000, 3};
  const auto lead = LeadOver(*model, options, *result, draws);
  ASSERT_TRUE(lead.ok());
  EXPECT_EQ(lead->error.low, 1);
  EXPECT_EQ(lead->error.value, 2);
  EXPECT_EQ(lead->error.high, 5);
  const Rival& vanilla = lead->rivals[0];
  EXPECT_EQ(vanilla.name, "vanilla");
  EXPECT_FALSE(vanilla.certain);
  EXPECT_NEAR(vanilla.better, 0.5 + 0.5 / 3, 0.02);
  EXPECT_EQ(lead->best_of_all, vanilla.better + vanilla.equal);
  EXPECT_TRUE(lead->rivals[2].is_the_plan);
  // Consistency ((1 2) 3) costs 5 + 3: even BOOT's worst is better.
  EXPECT_TRUE(lead->rivals[3].certain);
  const auto again = LeadOver(*model, options, *result, draws);
  EXPECT_EQ(again->rivals[0].better, vanilla.better);
  const auto other = LeadOver(*model, options, *result, {20000, 4});
  EXPECT_NE(other->rivals[0].better, vanilla.better);
  // With one merge vanilla is the plan. BOOT, which is better now and then, is not allowed and does
  // not count.
  options.max_merges = 1;
  const auto limited = SolveMeasured(*model, options);
  ASSERT_TRUE(limited.ok());
  const auto alone = LeadOver(*model, options, *limited, draws);
  ASSERT_TRUE(alone.ok());
  EXPECT_TRUE(alone->rivals[0].is_the_plan);
  EXPECT_FALSE(alone->rivals[2].allowed);
  EXPECT_LT(alone->rivals[2].better + alone->rivals[2].equal, 0.5);
  EXPECT_EQ(alone->best_of_all, 1);
}

TEST(Lead, RivalsThatCannotBePaidAreNamed) {
  std::mt19937_64 random(2);
  CaseKind kind;
  kind.steps = 8;
  const auto model = MeasuredModel::Create(MakeCase(kind, random).Tables());
  ASSERT_TRUE(model.ok());
  MeasuredOptions options;
  options.total_updates = 3;
  const auto result = SolveMeasured(*model, options);
  ASSERT_TRUE(result.ok());
  const auto lead = LeadOver(*model, options, *result, {10, 1});
  ASSERT_TRUE(lead.ok());
  EXPECT_TRUE(lead->rivals[0].affordable);   // one merge
  EXPECT_FALSE(lead->rivals[2].affordable);  // seven
  EXPECT_THAT(LeadOver(*model, options, *result, {-1, 1}).status().message(),
              testing::HasSubstr("draws is -1"));
}

}  // namespace
}  // namespace mergeplan
