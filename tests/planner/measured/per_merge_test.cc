#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "planner/measured/plan_error.h"
#include "planner/measured/solve.h"
#include "planner/operators/canonical.h"
#include "tests/oracle/enumerate.h"
#include "tests/planner/measured/cases.h"
#include "tests/planner/measured/oracle.h"

namespace mergeplan {
namespace {

using testing::HasSubstr;

MeasuredModel ModelOf(const RandomCase& c) {
  absl::StatusOr<MeasuredModel> model = MeasuredModel::Create(c.Tables());
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

CaseKind RandomKind(std::mt19937_64& random, int least, int most) {
  CaseKind kind;
  kind.steps = Pick(random, least, most);
  kind.start_matters = random() % 4 != 0;
  kind.convex = random() % 2 == 0;
  kind.zeros = random() % 4 == 0;
  kind.product_gains = random() % 3 == 0;
  return kind;
}

// Every kind of problem against the enumeration of all plans.
void AgainstEnumeration(int count, int least, int most, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  int impossible = 0;
  for (int n = 0; n < count; ++n) {
    const RandomCase c = MakeCase(RandomKind(random, least, most), random);
    const MeasuredModel model = ModelOf(c);
    MeasuredOptions options;
    options.student_steps = Pick(random, 1, std::min(3, c.steps));
    options.combine = random() % 2 == 0 ? Combine::kSum : Combine::kRms;
    options.updates = Pick(random, 1, 20);
    options.max_children = random() % 2 == 0 ? 0 : Pick(random, 2, 4);
    options.max_merges = random() % 2 == 0 ? 0 : Pick(random, 1, c.steps);
    SCOPED_TRACE(absl::StrCat("instance ", n, ": T ", c.steps, ", N ", options.student_steps, ", ",
                              std::string(ToString(options.combine)), ", children ",
                              options.max_children, ", merges ", options.max_merges));
    const oracle::Limits limits{options.max_children, options.max_merges};
    const auto best = static_cast<double>(
        oracle::LeastError(c, options.student_steps, options.updates, options.combine, limits));
    const absl::StatusOr<MeasuredResult> result = SolveMeasured(model, options);
    if (best < 0) {
      EXPECT_THAT(result.status().message(), HasSubstr("no plan has"));
      ++impossible;
      continue;
    }
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->optimal);
    EXPECT_EQ(result->plan.student_steps(), options.student_steps);
    EXPECT_TRUE(oracle::Keeps(result->plan, limits)) << result->plan.ToString();
    EXPECT_NEAR(result->error, best, 1e-13 * best);
    EXPECT_NEAR(result->error,
                static_cast<double>(
                    oracle::StudentError(c, result->plan, result->updates, options.combine)),
                1e-13 * best);
    EXPECT_LE(result->lower_bound, best);
    EXPECT_GE(result->lower_bound, best * (1 - 1e-12));
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_LT(impossible, count / 4);
}

TEST(PerMerge, ThousandsOfSmallInstances) { AgainstEnumeration(12000, 2, 6, 1); }
TEST(PerMerge, SevenAndEightSteps) { AgainstEnumeration(800, 7, 8, 2); }

// What the student's error is made of, by hand: T = 4, ((1 2) (3 4)) and two blocks.
TEST(PerMerge, AHandMadePlan) {
  MeasuredFunctions functions;
  functions.gain = [](int i, int m) { return MeasuredValue::Exactly(1 + 0.5 * (m - i)); };
  functions.distance = [](int, int a, int j) { return MeasuredValue::Exactly(10 - (j - a)); };
  functions.residual = [](int, int, std::int64_t u) {
    return MeasuredValue::Exactly(u == 1 ? 0.5 : 0.25);
  };
  functions.floor = [](int i, int j) { return MeasuredValue::Exactly(j - i); };
  const auto tables = TablesOfFunctions(4, functions, {1, 2}, true);
  ASSERT_TRUE(tables.ok()) << tables.status();
  const auto model = MeasuredModel::Create(*tables);
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<MergeSpec> merges = {
      {{1, 2}, {{1, 1}, {2, 2}}}, {{3, 4}, {{3, 3}, {4, 4}}}, {{1, 4}, {{1, 2}, {3, 4}}}};
  const auto plan = Plan::Create(4, merges, {{{1, 4}}});
  ASSERT_TRUE(plan.ok());
  // [1,2]: 0.5 * 10 + 1 = 6 after one update; [3,4]: 0.25 * 10 + 1 = 3.5 after two, through
  // Lambda(1,2) = 1.5; [1,4], from the start [3,4]: 0.5 * 9 + 3 = 7.5.
  EXPECT_DOUBLE_EQ(PlanError(*model, *plan, {1, 2, 1}, Combine::kSum).At(model->values()),
                   6 + 1.5 * 3.5 + 7.5);
  EXPECT_DOUBLE_EQ(PlanError(*model, *plan, {1, 2, 1}, Combine::kRms).At(model->values()),
                   std::sqrt(25 + 1 + 1.5 * 1.5 * (2.5 * 2.5 + 1) + 4.5 * 4.5 + 9));
  const auto blocks = Plan::Create(4, absl::MakeConstSpan(merges).first(2), {{1, 2}, {3, 4}});
  ASSERT_TRUE(blocks.ok());
  EXPECT_DOUBLE_EQ(PlanError(*model, *blocks, {1, 2}, Combine::kSum).At(model->values()),
                   6 + 1.5 * 3.5);
}

// README.md: where no number depends on the start of a merge, one block is best made in one merge.
TEST(PerMerge, WithoutStartsVanillaIsTheBest) {
  std::mt19937_64 random(3);
  for (int n = 0; n < 200; ++n) {
    CaseKind kind = RandomKind(random, 2, 12);
    kind.start_matters = false;
    const MeasuredModel model = ModelOf(MakeCase(kind, random));
    EXPECT_FALSE(model.start_matters());
    MeasuredOptions options;
    options.combine = n % 2 == 0 ? Combine::kSum : Combine::kRms;
    options.updates = 3;
    const auto result = SolveMeasured(model, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->plan, *CanonicalPlan(Strategy::kVanilla, kind.steps));
  }
}

// README.md: with any number of children allowed, only the noisiest child of a merge is merged.
TEST(PerMerge, CleanerChildrenStayUnmerged) {
  std::mt19937_64 random(4);
  int chains = 0;
  for (int n = 0; n < 200; ++n) {
    CaseKind kind = RandomKind(random, 4, 24);
    kind.start_matters = true;
    const MeasuredModel model = ModelOf(MakeCase(kind, random));
    MeasuredOptions options;
    options.student_steps = Pick(random, 1, 2);
    options.updates = Pick(random, 1, 20);
    const auto result = SolveMeasured(model, options);
    ASSERT_TRUE(result.ok()) << result.status();
    for (const Merge& merge : result->plan.merges()) {
      for (size_t k = 0; k + 1 < merge.children.size(); ++k) {
        EXPECT_TRUE(result->plan.is_step(merge.children[k])) << result->plan.ToString();
      }
    }
    chains += result->plan.size() > options.student_steps ? 1 : 0;
  }
  EXPECT_GT(chains, 50);  // and that is no empty statement: most are no vanilla plans
}

TEST(PerMerge, TiesGiveTheSamePlanWithFewMerges) {
  MeasuredFunctions functions;
  const auto zero = MeasuredValue::Exactly(0);
  functions.gain = [&](int, int) { return MeasuredValue::Exactly(1); };
  functions.distance = [&](int, int, int) { return zero; };
  functions.residual = [&](int, int, std::int64_t) { return zero; };
  functions.floor = [&](int, int) { return zero; };
  const auto tables = TablesOfFunctions(9, functions, {1}, true);
  ASSERT_TRUE(tables.ok());
  const auto model = MeasuredModel::Create(*tables);
  ASSERT_TRUE(model.ok()) << model.status();
  for (const int max_merges : {0, 3}) {
    MeasuredOptions options;
    options.updates = 1;
    options.max_merges = max_merges;
    const auto result = SolveMeasured(*model, options);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->error, 0);
    EXPECT_EQ(result->gap(), 0);
    EXPECT_EQ(result->plan, *CanonicalPlan(Strategy::kVanilla, 9));
  }
}

// Larger than what can be enumerated: never beaten by the canonical strategies or by limits.
TEST(PerMerge, LimitsNeverHelp) {
  std::mt19937_64 random(5);
  CaseKind kind;
  kind.steps = 40;
  const MeasuredModel model = ModelOf(MakeCase(kind, random));
  MeasuredOptions options;
  options.updates = 6;
  const auto free = SolveMeasured(model, options);
  ASSERT_TRUE(free.ok());
  for (const Strategy strategy : kStrategies) {
    const Plan plan = *CanonicalPlan(strategy, 40);
    const PlanError error(model, plan, std::vector<std::int64_t>(plan.size(), 6), Combine::kSum);
    EXPECT_LE(free->error, error.At(model.values()));
  }
  double before = free->error;
  for (const int children : {20, 6, 3, 2}) {
    options.max_children = children;
    const auto limited = SolveMeasured(model, options);
    ASSERT_TRUE(limited.ok());
    EXPECT_GE(limited->error, before * (1 - 1e-12));
    before = limited->error;
  }
  options.max_children = 0;
  options.max_merges = free->plan.size();
  EXPECT_DOUBLE_EQ(SolveMeasured(model, options)->error, free->error);
  options.max_merges = 1;
  EXPECT_EQ(SolveMeasured(model, options)->plan, *CanonicalPlan(Strategy::kVanilla, 40));
}

TEST(PerMerge, WrongOptionsAreNamed) {
  std::mt19937_64 random(6);
  CaseKind kind;
  kind.steps = 5;
  const MeasuredModel model = ModelOf(MakeCase(kind, random));
  const auto says = [&](const MeasuredOptions& options) {
    const auto result = SolveMeasured(model, options);
    return result.ok() ? std::string("none") : std::string(result.status().message());
  };
  MeasuredOptions good;
  good.updates = 3;
  EXPECT_EQ(says(good), "none");
  MeasuredOptions o = good;
  o.student_steps = 6;
  EXPECT_THAT(says(o), HasSubstr("student steps is 6, expected 1..5"));
  o = good;
  o.updates = 0;
  EXPECT_THAT(says(o), HasSubstr("no budget"));
  o = good;
  o.total_updates = 3;
  EXPECT_THAT(says(o), HasSubstr("give one"));
  o = good;
  o.updates = -3;
  EXPECT_THAT(says(o), HasSubstr("updates is -3"));
  o = good;
  o.max_children = 1;
  EXPECT_THAT(says(o), HasSubstr("max children is 1"));
  o = good;
  o.max_merges = -1;
  EXPECT_THAT(says(o), HasSubstr("max merges is -1"));
  o = good;
  o.max_merges = 2;
  o.max_children = 2;
  EXPECT_THAT(says(o),
              HasSubstr("with at most 2 children per merge and at most 2 merges; allow more"));
  o.updates = 0;
  o.total_updates = 10;
  EXPECT_THAT(says(o), HasSubstr("and at most 2 merges has so few merges; allow more"));
  o.max_children = 0;
  o.max_merges = 0;
  o.total_updates = 1;
  o.student_steps = 2;
  EXPECT_EQ(says(o), "none");
  o.max_children = 2;
  o.student_steps = 1;
  for (const double effort : {3e9, 0.0}) {
    o.effort = effort;
    EXPECT_THAT(says(o), HasSubstr("total updates is 1: no plan with 1 student step with at most"));
  }
  o = good;
  o.max_merges = 2;
  o.effort = 0;
  EXPECT_THAT(says(o), HasSubstr("max merges: 2 merges of 5 steps are too many"));
}

}  // namespace
}  // namespace mergeplan
