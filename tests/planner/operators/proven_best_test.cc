// ProvenBest against the oracle's exhaustive enumeration, and what lies just outside of the
// conditions of planner/operators/THEOREMS.md: every counterexample named there.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/operators/canonical.h"
#include "planner/operators/model.h"
#include "planner/operators/regimes.h"
#include "tests/oracle/enumerate.h"
#include "tests/oracle/problem.h"
#include "tests/planner/operators/test_util.h"

namespace mergeplan {
namespace {

using oracle::Problem;
using oracle::ToDouble;
using oracle::Wide;

// ---------------------------------------------------------------- ProvenBest

// All plans with `blocks` blocks in which every block is merged by the strategy.
std::vector<Plan> WithBlocksOf(Strategy strategy, int T, int blocks) {
  std::vector<Plan> out;
  for (const Plan& plan : oracle::AllPlans(T, blocks, Space::kNary)) {
    std::vector<MergeSpec> merges;
    const std::vector<Range> ranges = plan.BlockRanges();
    for (const Range& block : ranges) {
      const int shift = block.first - 1;
      for (MergeSpec m : CanonicalPlan(strategy, block.last - shift).value().Specs()) {
        for (Range* r : {&m.range}) *r = {r->first + shift, r->last + shift};
        for (Range& r : m.children) r = {r.first + shift, r.last + shift};
        merges.push_back(m);
      }
    }
    if (Plan::Create(T, merges, ranges).value() == plan) out.push_back(plan);
  }
  return out;
}

TEST(ProvenBest, IsNotBeatenByAnyPlan) {
  std::mt19937_64 rng(7);
  std::map<std::string, int> seen;
  for (int trial = 0; trial < 6000; ++trial) {
    const int T = trial % 20 == 0 ? 6 : RandomInt(rng, 2, 5);
    const int d = RandomInt(rng, 1, 3), blocks = RandomInt(rng, 1, std::min(T, 3));
    const Init init = kInits[RandomInt(rng, 0, 3)];
    const Reference reference = kReferences[RandomInt(rng, 0, 2)];
    Schedule schedule = RandomInt(rng, 0, 3) == 0 ? RandomFlow(rng, T) : RandomPreserving(rng, T);
    if (RandomInt(rng, 0, 3) == 0) {  // variance preserving, but it stops before pure noise
      const double end = Uniform(rng, 0.3, 1.5);
      for (int t = 0; t <= T; ++t) {
        schedule.alpha[t] = std::cos(end * t / T);
        schedule.sigma[t] = std::sin(end * t / T);
      }
    }
    // Variances that lie in one regime, or anywhere.
    const Lambda0Range range = RangeOfLambda0(schedule);
    std::vector<double> lambda(d), weights(d, 1.0);
    const int kind = RandomInt(rng, 0, 4);
    for (double& l : lambda) {
      switch (kind) {
        case 0:
          l = LogUniform(rng, 1e-3, 1);
          break;
        case 1:
          l = 1 + (std::max(range.least, 1.0) - 1) * Uniform(rng, 0, 1);
          break;
        case 2:
          l = std::clamp(range.largest, 1.0, 1e6) * (1 + LogUniform(rng, 1e-6, 100));
          break;
        case 3:
          l = RandomInt(rng, 0, 1) == 0 ? LogUniform(rng, 1e-2, 1)
                                        : std::clamp(range.largest, 1.0, 1e6) * 1.5;
          break;
        default:
          l = LogUniform(rng, 1e-2, 1e2);
      }
    }
    if (d > 1 && RandomInt(rng, 0, 2) == 0) weights[0] = 0;
    const double s = LogUniform(rng, 0.01, 30);
    ModelSpec spec = SpecOf(schedule, lambda, Budget::Flow(s), init, reference);
    spec.weights = weights;
    const absl::StatusOr<Model> model = Model::Create(spec);
    ASSERT_TRUE(model.ok()) << model.status();
    const std::optional<ProvenStrategy> proven = ProvenBest(*model, blocks);
    if (!proven) {
      ++seen["none"];
      continue;
    }
    ++seen[std::string(ToString(init)) + " " + std::string(ToString(proven->strategy))];
    const Problem problem = OracleProblem(schedule, lambda, s, init, reference, weights);
    const oracle::Solution best = Solve(problem, blocks, Space::kNary);
    std::optional<Wide> value;
    double tolerance = 0;
    for (const Plan& plan : WithBlocksOf(proven->strategy, T, blocks)) {
      const Wide objective = problem.Objective(plan);
      if (value && *value <= objective) continue;
      value = objective;
      tolerance = problem.Tolerance(plan);
    }
    ASSERT_TRUE(value.has_value());
    EXPECT_LE(ToDouble(*value - best.objective), 2 * tolerance)
        << trial << " " << ToString(init) << " " << ToString(proven->strategy) << " "
        << ToString(reference) << " " << best.plan.ToString();
  }
  // Every row of the table has been met many times, and the answer is not always yes.
  for (const char* row : {"child boot", "child consistency", "child vanilla", "teacher vanilla",
                          "jump vanilla", "child-jump boot", "none"}) {
    EXPECT_GE(seen[row], 80) << row;
  }
}

std::optional<Strategy> Proven(const Schedule& schedule, std::vector<double> lambda, Init init,
                               Reference reference, int blocks = 1, double s = 1) {
  const Model model =
      Model::Create(SpecOf(schedule, std::move(lambda), Budget::Flow(s), init, reference)).value();
  const std::optional<ProvenStrategy> proven = ProvenBest(model, blocks);
  if (!proven) return std::nullopt;
  EXPECT_FALSE(proven->theorem.empty());
  EXPECT_FALSE(proven->reason.empty());
  return proven->strategy;
}

TEST(ProvenBest, FollowsTheTable) {
  using enum Strategy;
  const Schedule cosine = CosineSchedule(32);  // min lambda_0 = 1.0503, max lambda_0 = 2.0012
  const auto child = [&](std::vector<double> lambda, Reference reference, int blocks = 1) {
    return Proven(cosine, std::move(lambda), Init::kChild, reference, blocks);
  };
  for (int blocks : {1, 4}) {
    EXPECT_EQ(child({0.1, 1}, Reference::kSurrogate, blocks), kBoot);
    EXPECT_EQ(child({1.01, 1.05}, Reference::kSurrogate, blocks), kConsistency);
    EXPECT_EQ(child({2.002, 40}, Reference::kSurrogate, blocks), kVanilla);
    EXPECT_EQ(child({0.1, 1.05}, Reference::kTeacher, blocks), kBoot);
    EXPECT_EQ(child({1, 1.05}, Reference::kData, blocks), kConsistency);
    EXPECT_EQ(child({2.002, 40}, Reference::kData, blocks), kVanilla);
    for (const auto& mixed : {std::vector{0.9, 1.01}, {1.04, 1.06}, {1.5}, {0.9, 3.0}})
      EXPECT_EQ(child(mixed, Reference::kSurrogate, blocks), std::nullopt);
    for (Reference reference : kReferences) {
      const std::vector<double> any = {0.1, 1.01, 1.5, 10};
      EXPECT_EQ(Proven(cosine, any, Init::kJump, reference, blocks), kVanilla);
      EXPECT_EQ(Proven(cosine, any, Init::kChildJump, reference, blocks), kBoot);
    }
    // The least in one dimension, the largest in the other.
    EXPECT_EQ(Proven(cosine, {0.5, 10}, Init::kTeacher, Reference::kSurrogate, blocks), kVanilla);
    EXPECT_EQ(Proven(cosine, {1.02}, Init::kTeacher, Reference::kTeacher, blocks), kVanilla);
    EXPECT_EQ(Proven(cosine, {1.02}, Init::kTeacher, Reference::kSurrogate, blocks), std::nullopt);
  }
  // Little training leaves every plan above the data's standard deviation, long training leads all
  // below it.
  EXPECT_EQ(Proven(cosine, {0.2}, Init::kChild, Reference::kData, 1, 0.5), kBoot);
  EXPECT_EQ(Proven(cosine, {0.2}, Init::kChild, Reference::kData, 1, 3), std::nullopt);
  EXPECT_EQ(Proven(cosine, {0.2}, Init::kChild, Reference::kData, 1, 30), kConsistency);
  EXPECT_NE(Proven(cosine, {0.9, 3}, Init::kChild, Reference::kSurrogate, 31), std::nullopt);
  EXPECT_EQ(Proven(cosine, {0.9}, Init::kChild, Reference::kSurrogate, 0), std::nullopt);
  EXPECT_EQ(Proven(cosine, {0.9}, Init::kChild, Reference::kSurrogate, 33), std::nullopt);
  // A dimension without weight has no say.
  ModelSpec spec = SpecOf(cosine, {0.9, 3}, Budget::Flow(1), Init::kChild);
  spec.weights = {1, 0};
  EXPECT_EQ(ProvenBest(Model::Create(spec).value())->strategy, kBoot);
}

// "How many blocks": the optimum over N falls with N, but rises in the consistency regime.
TEST(ProvenBest, NumberOfBlocks) {
  std::mt19937_64 rng(8);
  int rising = 0, falling = 0;
  for (int trial = 0; trial < 250; ++trial) {
    const int T = RandomInt(rng, 3, 5);
    const Init init = kInits[RandomInt(rng, 0, 3)];
    const Reference reference = kReferences[RandomInt(rng, 0, 1)];
    const Schedule schedule = RandomPreserving(rng, T);
    const Lambda0Range range = RangeOfLambda0(schedule);
    const std::vector<double> choices = {LogUniform(rng, 1e-2, 1),
                                         1 + (range.least - 1) * Uniform(rng, 0.01, 0.99),
                                         range.largest * LogUniform(rng, 1.001, 30)};
    const double lambda = choices[RandomInt(rng, 0, 2)], s = LogUniform(rng, 0.05, 5);
    const std::optional<Strategy> proven = Proven(schedule, {lambda}, init, reference, 1, s);
    if (!proven) continue;
    const Problem problem = OracleProblem(schedule, {lambda}, s, init, reference);
    for (int blocks = 1; blocks < T; ++blocks) {
      const Wide fewer = Solve(problem, blocks, Space::kNary).objective;
      const Wide more = Solve(problem, blocks + 1, Space::kNary).objective;
      const bool consistency = proven == Strategy::kConsistency;
      EXPECT_LE(ToDouble(consistency ? fewer - more : more - fewer), 1e-15) << trial;
      ++(consistency ? rising : falling);
    }
  }
  EXPECT_GT(rising, 20);
  EXPECT_GT(falling, 200);
}

// ---------------------------------------------------------------- where the conditions end

Schedule Angles(const std::vector<double>& angle) {
  std::vector<double> alpha, sigma;
  for (double x : angle) {
    const bool noise = x == std::numbers::pi / 2;
    alpha.push_back(noise ? 0 : std::cos(x));
    sigma.push_back(noise ? 1 : std::sin(x));
  }
  return Arrays(std::move(alpha), std::move(sigma));
}

// T = 3: the values of the three plans there are, and which of them is best.
void ExpectThree(const Schedule& schedule, double lambda, double s, Init init, Reference reference,
                 std::array<double, 3> boot_vanilla_consistency, Strategy best,
                 std::optional<Strategy> proven) {
  const Problem problem = OracleProblem(schedule, {lambda}, s, init, reference);
  const std::array order = {Strategy::kBoot, Strategy::kVanilla, Strategy::kConsistency};
  for (int k = 0; k < 3; ++k) {
    const Plan plan = CanonicalPlan(order[k], 3).value();
    EXPECT_NEAR(ToDouble(problem.Value(plan)[0]), boot_vanilla_consistency[k], 5.1e-7) << k;
  }
  const oracle::Solution solution = Solve(problem, 1, Space::kNary);
  EXPECT_EQ(solution.plans, 3U);
  EXPECT_TRUE(solution.unique());
  EXPECT_EQ(solution.plan, CanonicalPlan(best, 3).value()) << solution.plan.ToString();
  EXPECT_EQ(Proven(schedule, {lambda}, init, reference, 1, s), proven);
}

TEST(ConditionsEnd, WithoutVariancePreservationLambdaUpToOneIsNotEnough) {
  ExpectThree(Arrays({1, 2.0 / 3, 1.0 / 3, 0}, {0, 1.0 / 3, 2.0 / 3, 1}), 0.9, 1, Init::kChild,
              Reference::kSurrogate, {0.618052, 0.615007, 0.588838}, Strategy::kVanilla,
              std::nullopt);
}

TEST(ConditionsEnd, LargestLambda0) {
  const Schedule cosine = CosineSchedule(3);
  EXPECT_NEAR(RangeOfLambda0(cosine).largest, 2.154701, 1e-6);
  EXPECT_NEAR(RangeOfLambda0(cosine).least, 1.732051, 1e-6);
  ExpectThree(cosine, 2.15, 0.4, Init::kChild, Reference::kSurrogate,
              {0.894213, 0.894210, 0.894262}, Strategy::kConsistency, std::nullopt);
  ExpectThree(cosine, 2.16, 0.4, Init::kChild, Reference::kSurrogate,
              {0.895141, 0.895146, 0.895086}, Strategy::kVanilla, Strategy::kVanilla);
  ExpectThree(cosine, 1.74, 0.4, Init::kChild, Reference::kSurrogate,
              {0.851845, 0.851836, 0.857562}, Strategy::kConsistency, std::nullopt);
}

TEST(ConditionsEnd, LeastLambda0) {
  const Schedule schedule = Angles({0, 0.3, 1.5, std::numbers::pi / 2});
  EXPECT_NEAR(RangeOfLambda0(schedule).least, 2.046752, 1e-6);
  ExpectThree(schedule, 2.04, 0.4, Init::kChild, Reference::kSurrogate,
              {0.684562, 0.684583, 0.684599}, Strategy::kConsistency, Strategy::kConsistency);
  ExpectThree(schedule, 2.05, 0.4, Init::kChild, Reference::kSurrogate,
              {0.685002, 0.684992, 0.684985}, Strategy::kBoot, std::nullopt);
}

TEST(ConditionsEnd, ChildJumpAgainstDataThatTheTeacherOvershoots) {
  ExpectThree(Angles({0, 0.2, 0.4, 0.6}), 0.5, 2, Init::kChildJump, Reference::kData,
              {0.777859, 0.776108, 0.770542}, Strategy::kConsistency, std::nullopt);
}

}  // namespace
}  // namespace mergeplan
