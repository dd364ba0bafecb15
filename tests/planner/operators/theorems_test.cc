// The statements of the paper about merge plans, and those of the design that go beyond it, each by
// exhaustive enumeration with the oracle. The objectives are compared in quadruple precision.

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "planner/operators/canonical.h"
#include "planner/operators/regimes.h"
#include "tests/oracle/algorithm1.h"
#include "tests/oracle/enumerate.h"
#include "tests/oracle/problem.h"
#include "tests/planner/operators/test_util.h"

namespace mergeplan {
namespace {

using oracle::Problem;
using oracle::Solution;
using oracle::ToDouble;
using oracle::Wide;

const Wide kTiny = 1e-28;

// The strategy's objective is the best of all n-ary plans.
void ExpectBest(const Problem& problem, Strategy strategy) {
  const Solution best = Solve(problem, 1, Space::kNary);
  const Plan plan = CanonicalPlan(strategy, problem.steps()).value();
  EXPECT_LE(ToDouble(problem.Objective(plan) - best.objective), ToDouble(kTiny))
      << ToString(strategy) << " " << oracle::ToString(problem.Objective(plan)) << ", but "
      << best.plan.ToString() << " " << oracle::ToString(best.objective);
}

// lambda > lambda_0: one merge of all steps. Lambda is not "much larger than one" here but anything
// above the bound of the proof.
TEST(Theorems, thm_vanilla_distillation_optimality) {
  std::mt19937_64 rng(21);
  for (int trial = 0; trial < 120; ++trial) {
    const int T = RandomInt(rng, 2, 7);
    const Schedule schedule = trial % 2 == 0 ? CosineSchedule(T) : RandomPreserving(rng, T);
    const Lambda0Range range = RangeOfLambda0(schedule);
    const double lambda = range.largest * (1 + LogUniform(rng, 1e-4, 100));
    ASSERT_EQ(RegimeOf(lambda, range), VarianceRegime::kAbove);
    ASSERT_EQ(BestScalarStrategy(RegimeOf(lambda, range)), Strategy::kVanilla);
    ExpectBest(OracleProblem(schedule, {lambda}, LogUniform(rng, 0.01, 10), Init::kChild),
               Strategy::kVanilla);
  }
}

TEST(Theorems, thm_sequential_boot_optimality) {
  std::mt19937_64 rng(22);
  for (int trial = 0; trial < 120; ++trial) {
    const int T = RandomInt(rng, 2, 7);
    const Schedule schedule = trial % 2 == 0 ? CosineSchedule(T) : RandomPreserving(rng, T);
    const double lambda = trial % 10 == 0 ? 0.999999 : LogUniform(rng, 1e-4, 1);
    ASSERT_EQ(BestScalarStrategy(RegimeOf(lambda, RangeOfLambda0(schedule))), Strategy::kBoot);
    ExpectBest(OracleProblem(schedule, {lambda}, LogUniform(rng, 0.01, 10), Init::kChild),
               Strategy::kBoot);
  }
}

// The third regime: consistency for 1 < lambda < min lambda_0 (theorem 2 of
// planner/operators/THEOREMS.md).
TEST(Theorems, ConsistencyIsBestBelowLambda0) {
  std::mt19937_64 rng(23);
  for (int trial = 0; trial < 120; ++trial) {
    const int T = RandomInt(rng, 2, 7);
    const Schedule schedule = trial % 2 == 0 ? CosineSchedule(T) : RandomPreserving(rng, T);
    const Lambda0Range range = RangeOfLambda0(schedule);
    const double lambda = 1 + (range.least - 1) * Uniform(rng, 0.01, 0.99);
    ASSERT_EQ(BestScalarStrategy(RegimeOf(lambda, range)), Strategy::kConsistency);
    ExpectBest(OracleProblem(schedule, {lambda}, LogUniform(rng, 0.01, 10), Init::kChild),
               Strategy::kConsistency);
  }
}

// Three steps: the differences that the two proofs compute.
TEST(Theorems, ThreeStepDifferences) {
  std::mt19937_64 rng(24);
  for (int trial = 0; trial < 200; ++trial) {
    const Schedule schedule = RandomPreserving(rng, 3);
    const Problem p = OracleProblem(schedule, {LogUniform(rng, 1e-2, 1e2)},
                                    LogUniform(rng, 0.05, 5), Init::kChild);
    const Wide x = p.A(1, 0), y = p.A(2, 0), a = p.A(3, 0), g = p.Gamma(3, 0), h = p.Gamma(2, 0);
    const auto value = [&](Strategy s) { return p.Value(CanonicalPlan(s, 3).value())[0]; };
    const Wide boot = value(Strategy::kBoot), vanilla = value(Strategy::kVanilla),
               consistency = value(Strategy::kConsistency);
    const double scale = 1e-30 * ToDouble(1 + boot + vanilla);
    EXPECT_NEAR(ToDouble(boot - vanilla + g * (1 - g) * a * (x - 1) * (y - 1)), 0, scale);
    EXPECT_NEAR(ToDouble(boot - consistency - (1 - g) * a * (x - 1) * (y * (h - g) + g)), 0, scale);
    EXPECT_NEAR(ToDouble(vanilla - consistency - (1 - g) * h * a * y * (x - 1)), 0, scale);
  }
}

// Algorithm 1 returns the best binary plan...
TEST(Theorems, thm_pareto_dp_merge_optimal) {
  std::mt19937_64 rng(25);
  for (int trial = 0; trial < 60; ++trial) {
    const int T = RandomInt(rng, 1, 6), d = RandomInt(rng, 1, 3);
    const Schedule schedule = trial % 2 == 0 ? CosineSchedule(T) : RandomPreserving(rng, T);
    std::vector<double> lambda(d);
    for (double& l : lambda) l = LogUniform(rng, 0.1, 10);
    const Problem problem = OracleProblem(schedule, lambda, LogUniform(rng, 0.05, 5), Init::kChild);
    const Solution best = Solve(problem, 1, Space::kBinary);
    const oracle::Algorithm1Result dp = Algorithm1(problem);
    EXPECT_LE(std::abs(ToDouble(dp.objective - best.objective)), ToDouble(kTiny));
    EXPECT_LE(std::abs(ToDouble(dp.objective - problem.Objective(dp.plan))), ToDouble(kTiny));
  }
}

// ... but not the best plan of the paper's own merge rule: the smallest counterexample.
TEST(Theorems, Algorithm1MissesAnNaryPlan) {
  const Problem problem = OracleProblem(CosineSchedule(4), {1.995}, 0.4, Init::kChild);
  const auto error = [&](const std::vector<Wide>& value) {
    return ToDouble(value[0] - problem.Tau(0));
  };
  const oracle::Algorithm1Result dp = Algorithm1(problem);
  EXPECT_EQ(dp.plan, CanonicalPlan(Strategy::kProgressive, 4).value()) << dp.plan.ToString();
  EXPECT_NEAR(error(dp.value), -0.1242979137, 5e-11);
  const Solution best = Solve(problem, 1, Space::kNary);
  const std::vector<MergeSpec> merges = {{{1, 2}, {{1, 1}, {2, 2}}},
                                         {{1, 4}, {{1, 2}, {3, 3}, {4, 4}}}};
  EXPECT_EQ(best.plan, Plan::Create(4, merges, {{Range{1, 4}}}).value()) << best.plan.ToString();
  EXPECT_NEAR(error(best.value), -0.1238384100, 5e-11);
  EXPECT_TRUE(best.unique());
}

// eq:preference: for the surrogate no plan passes tau.
TEST(Theorems, eq_preference) {
  std::mt19937_64 rng(26);
  for (int trial = 0; trial < 60; ++trial) {
    const int T = RandomInt(rng, 1, 6);
    const Schedule schedule = RandomPreserving(rng, T);
    const std::vector<double> lambda = {LogUniform(rng, 1, 100), LogUniform(rng, 0.01, 1)};
    const Problem problem = OracleProblem(schedule, lambda, LogUniform(rng, 0.05, 5), Init::kChild);
    const oracle::ValueRange range = RangeOfValues(problem, 1, Space::kNary);
    EXPECT_LE(ToDouble(range.largest[0] - problem.Tau(0)), 1e-14);
    EXPECT_GE(ToDouble(range.least[1] - problem.Tau(1)), -1e-14);
  }
}

TEST(Regimes, Lambda0OfTheCosineSchedule) {
  for (const auto& [T, largest, least] :
       {std::tuple(32, 2.001206, 1.0503), std::tuple(64, 2.000301, 1.0248),
        std::tuple(128, 2.0000753, 1.0123), std::tuple(256, 2.0000188, 1.0062)}) {
    const Schedule schedule = CosineSchedule(T);
    const Lambda0Range range = RangeOfLambda0(schedule);
    EXPECT_NEAR(range.largest, largest, 6e-7);
    EXPECT_NEAR(range.least, least, 6e-5);
    const double tangent = std::tan(std::numbers::pi / (4 * T));
    EXPECT_NEAR(range.largest, 2 / (1 - tangent * tangent), 1e-9);
    EXPECT_EQ(range.largest, Lambda0(schedule).front());
    EXPECT_EQ(Lambda0(schedule).size(), static_cast<size_t>(T - 1));
  }
}

// A_t > 1 exactly above lambda_0(t), on any schedule.
TEST(Regimes, Lambda0SeparatesAmplifyingSteps) {
  std::mt19937_64 rng(27);
  for (int trial = 0; trial < 100; ++trial) {
    const int T = RandomInt(rng, 2, 12);
    Schedule schedule = trial % 2 == 0 ? RandomPreserving(rng, T) : RandomFlow(rng, T);
    if (trial % 4 == 1) {  // not preserving, and neither alpha nor sigma need be monotone
      for (int t = 0; t <= T; ++t) {
        const double scale = Uniform(rng, 0.5, 2);
        schedule.alpha[t] *= scale;
        schedule.sigma[t] *= scale;
      }
    }
    const std::vector<double> bounds = Lambda0(schedule);
    for (int t = 1; t < T; ++t) {
      for (double lambda : {0.01, 0.5, 1.0, 1.3, 3.0, 100.0, bounds[t - 1] * (1 - 1e-6),
                            bounds[t - 1] * (1 + 1e-6)}) {
        if (!(lambda > 0) || !std::isfinite(lambda)) continue;
        const Problem p = OracleProblem(schedule, {lambda}, 1, Init::kChild);
        EXPECT_EQ(p.A(t, 0) > 1, lambda > bounds[t - 1]) << t << " " << lambda;
      }
    }
  }
  EXPECT_EQ(RangeOfLambda0(CosineSchedule(1)).largest, 1);
  EXPECT_EQ(RegimeOf(1, {1.05, 2}), VarianceRegime::kUpToOne);
  EXPECT_EQ(RegimeOf(1.04, {1.05, 2}), VarianceRegime::kBelow);
  EXPECT_EQ(RegimeOf(1.05, {1.05, 2}), VarianceRegime::kBetween);
  EXPECT_EQ(RegimeOf(2, {1.05, 2}), VarianceRegime::kBetween);
  EXPECT_EQ(RegimeOf(2.1, {1.05, 2}), VarianceRegime::kAbove);
  EXPECT_EQ(BestScalarStrategy(VarianceRegime::kBetween), std::nullopt);
}

// Which side of tau the values of all plans lie on: the table of the README.
TEST(Dominance, Table) {
  enum Side { kAbove, kBelow, kNeither };
  // lambda < 1, = 1, 1..min lambda_0, between, > max lambda_0.
  const std::vector<Side> falling = {kAbove, kAbove, kBelow, kBelow, kBelow};
  const std::vector<Side> teacher = {kAbove, kAbove, kAbove, kNeither, kBelow};
  const std::vector<Side> data = {kNeither, kBelow, kBelow, kBelow, kBelow};
  const std::vector<Side> rising(5, kBelow);
  std::mt19937_64 rng(28);
  // For each cell: did a plan lie above, below?
  std::map<std::tuple<Init, Reference, int>, std::pair<bool, bool>> seen;
  for (int trial = 0; trial < 150; ++trial) {
    const int T = trial < 140 ? RandomInt(rng, 2, 5) : 7;
    const Schedule schedule = trial % 2 == 0 ? CosineSchedule(T) : RandomPreserving(rng, T);
    const Lambda0Range range = RangeOfLambda0(schedule);
    const std::vector<double> lambda = {
        LogUniform(rng, 1e-3, 0.999), 1, 1 + (range.least - 1) * Uniform(rng, 0.01, 0.99),
        range.least + (range.largest - range.least) * Uniform(rng, 0, 1),
        range.largest * (1 + LogUniform(rng, 1e-3, 100))};
    const double s = LogUniform(rng, 0.05, 5);
    for (Init init : kInits) {
      const Problem problem = OracleProblem(schedule, lambda, s, init);
      for (int blocks = 1; blocks <= std::min(T, 3); ++blocks) {
        const oracle::ValueRange values = RangeOfValues(problem, blocks, Space::kNary);
        for (Reference reference : kReferences) {
          for (int k = 0; k < 5; ++k) {
            // The schedules are variance preserving up to float64 rounding, so the table holds up
            // to that.
            const Wide slack = 1e-14 * (1 + problem.Tau(k, reference));
            auto& [above, below] = seen[{init, reference, k}];
            above |= values.largest[k] > problem.Tau(k, reference) + slack;
            below |= values.least[k] < problem.Tau(k, reference) - slack;
          }
        }
      }
    }
  }
  for (const auto& [cell, sides] : seen) {
    const auto& [init, reference, k] = cell;
    const bool from_node = init == Init::kChild || init == Init::kTeacher;
    const std::vector<Side>& row = !from_node                           ? rising
                                   : reference == Reference::kSurrogate ? falling
                                   : reference == Reference::kTeacher   ? teacher
                                                                        : data;
    SCOPED_TRACE(std::string(ToString(init)) + " " + std::string(ToString(reference)) + " regime " +
                 std::to_string(k));
    EXPECT_EQ(sides.first, row[k] != kBelow) << "some plan above tau";
    // At lambda = 1 with the surrogate or teacher reference all steps are below one.
    EXPECT_EQ(sides.second, row[k] != kAbove) << "some plan below tau";
  }
}

// ... for `jump` and `child-jump` on any schedule.
TEST(Dominance, JumpsOnFlowSchedules) {
  std::mt19937_64 rng(29);
  for (int trial = 0; trial < 100; ++trial) {
    const int T = RandomInt(rng, 2, 6);
    const Schedule schedule = RandomFlow(rng, T);
    for (Init init : {Init::kJump, Init::kChildJump}) {
      const Problem problem =
          OracleProblem(schedule, {LogUniform(rng, 1e-2, 1e2)}, LogUniform(rng, 0.05, 5), init);
      const oracle::ValueRange values = RangeOfValues(problem, RandomInt(rng, 1, T), Space::kNary);
      for (Reference reference : {Reference::kTeacher, Reference::kData}) {
        const Wide tau = problem.Tau(0, reference);
        EXPECT_LE(ToDouble(values.largest[0] - tau), 1e-14 * ToDouble(1 + tau));
      }
    }
  }
}

// Every best plan has a peer, at least as good, whose blocks are vanilla merges or single steps.
void ExpectVanillaBlocksAreBest(const Problem& problem, int blocks) {
  const Solution best = Solve(problem, blocks, Space::kNary);
  bool first = true;
  Wide vanilla = 0;
  for (const Plan& plan : oracle::AllPlans(problem.steps(), blocks, Space::kNary)) {
    const int long_blocks = static_cast<int>(std::count_if(
        plan.blocks().begin(), plan.blocks().end(), [&](int node) { return !plan.is_step(node); }));
    if (plan.size() != long_blocks) continue;
    const Wide objective = problem.Objective(plan);
    if (first || objective < vanilla) vanilla = objective;
    first = false;
  }
  ASSERT_FALSE(first);
  EXPECT_LE(ToDouble(vanilla - best.objective), 1e-27 * ToDouble(1 + best.objective))
      << best.plan.ToString();
}

// With the start `jump` vanilla is optimal for every spectrum, reference and schedule.
TEST(Theorems, VanillaIsOptimalWithTheStartJump) {
  std::mt19937_64 rng(30);
  for (int trial = 0; trial < 100; ++trial) {
    const int T = RandomInt(rng, 2, 6), d = RandomInt(rng, 1, 3);
    const bool flow = trial % 2 == 1;
    const Schedule schedule = flow ? RandomFlow(rng, T) : RandomPreserving(rng, T);
    std::vector<double> lambda(d);
    for (double& l : lambda) l = LogUniform(rng, 1e-2, 1e2);
    const Problem problem = OracleProblem(schedule, lambda, LogUniform(rng, 0.05, 5), Init::kJump,
                                          kReferences[RandomInt(rng, 0, 2)]);
    ExpectVanillaBlocksAreBest(problem, RandomInt(rng, 1, T));
  }
}

// With the start `teacher` it is where all variances are at most one.
TEST(Theorems, VanillaIsOptimalWithTheStartTeacherUpToVarianceOne) {
  std::mt19937_64 rng(31);
  for (int trial = 0; trial < 100; ++trial) {
    const int T = RandomInt(rng, 2, 6), d = RandomInt(rng, 1, 3);
    const Schedule schedule = trial % 2 == 0 ? CosineSchedule(T) : RandomPreserving(rng, T);
    std::vector<double> lambda(d);
    for (double& l : lambda) l = LogUniform(rng, 1e-2, 0.9999);
    const Problem problem =
        OracleProblem(schedule, lambda, LogUniform(rng, 0.05, 5), Init::kTeacher,
                      trial % 3 == 0 ? Reference::kTeacher : Reference::kSurrogate);
    ExpectVanillaBlocksAreBest(problem, RandomInt(rng, 1, T));
  }
}

// With the start `child-jump` BOOT has the largest value on every schedule (theorem 1 of
// planner/operators/THEOREMS.md).
TEST(Theorems, BootIsOptimalWithTheStartChildJump) {
  std::mt19937_64 rng(32);
  for (int trial = 0; trial < 300; ++trial) {
    const int T = trial % 25 == 0 ? 7 : RandomInt(rng, 2, 6);
    const Schedule schedule = trial % 3 == 0   ? CosineSchedule(T)
                              : trial % 3 == 1 ? RandomPreserving(rng, T)
                                               : RandomFlow(rng, T);
    const Problem problem = OracleProblem(schedule, {LogUniform(rng, 1e-2, 1e2)},
                                          LogUniform(rng, 0.01, 10), Init::kChildJump);
    const Wide boot = problem.Value(CanonicalPlan(Strategy::kBoot, T).value())[0];
    const Wide largest = RangeOfValues(problem, 1, Space::kNary).largest[0];
    EXPECT_LE(ToDouble(largest - boot), 1e-28 * ToDouble(largest)) << "trial " << trial;
  }
}

}  // namespace
}  // namespace mergeplan
