// The tables and values of Model against the oracle and against plain integration.

#include "planner/operators/model.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/operators/canonical.h"
#include "tests/oracle/enumerate.h"
#include "tests/oracle/problem.h"
#include "tests/planner/operators/test_util.h"

namespace mergeplan {
namespace {

using oracle::ToDouble;
using ::testing::HasSubstr;

// prop:student_gradient_flow: integrates da/ds = -dL/da, L = n (a - target)^2, and compares.
TEST(Budget, prop_student_gradient_flow) {
  for (double n : {0.05, 1.0, 3.7}) {
    for (double s : {0.1, 1.6, 6.4}) {
      const double target = 0.35, start = 0.9;
      const auto slope = [&](double a) { return -2 * n * (a - target); };
      double a = start;
      const int steps = 20000;
      const double h = s / steps;
      for (int i = 0; i < steps; ++i) {  // the classical Runge-Kutta method
        const double k1 = slope(a), k2 = slope(a + h / 2 * k1), k3 = slope(a + h / 2 * k2),
                     k4 = slope(a + h * k3);
        a += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
      }
      const Budget budget = Budget::Flow(s);
      EXPECT_NEAR(a, budget.OneMinusGamma(n) * target + budget.Gamma(n) * start, 1e-12);
    }
  }
}

// The mean of SGD: every update multiplies the distance by 1 - 2 lr |phi|^2 n.
TEST(Budget, SgdShrinksByEveryUpdate) {
  const Budget budget = Budget::Sgd(1e-3, 100, 64, 32);
  double distance = 1;
  for (int u = 0; u < 100; ++u) distance *= 1 - 2 * 1e-3 * 32 * 1.7;
  EXPECT_NEAR(budget.Gamma(1.7), distance, 1e-15);
  EXPECT_NEAR(budget.OneMinusGamma(1.7), 1 - distance, 1e-15);
  // The paper's setting: lr 1e-3, 100 updates and |phi|^2 = 32 are about s = 3.2.
  EXPECT_NEAR(-std::log(budget.Gamma(0.01)) / (2 * 0.01), 3.2, 2e-3);
  // 1 - gamma keeps its digits where gamma is nearly one.
  EXPECT_NEAR(Budget::Sgd(1e-12, 10).OneMinusGamma(1), 2e-11, 1e-21);
  EXPECT_NEAR(Budget::Flow(1e-12).OneMinusGamma(1), 2e-12, 1e-23);
}

TEST(Budget, SharedOver) {
  EXPECT_EQ(Budget::Flow(1.6).SharedOver(1, 31).train_time, 1.6 * 31);
  EXPECT_EQ(Budget::Sgd(0.005, 320).SharedOver(3, 31).iterations, 3307);  // 3306.67
  EXPECT_EQ(Budget::Sgd(0.005, 3).SharedOver(6, 5).iterations, 3);        // 2.5, away from zero
  EXPECT_EQ(Budget::Sgd(0.005, 1).SharedOver(31, 2).iterations, 1);
  EXPECT_EQ(Budget::Flow(1.6).SharedOver(0, 31), Budget::Flow(1.6));
}

TEST(Budget, RefusesTooLargeRatesAndNamesTheLargest) {
  EXPECT_TRUE(Budget::Sgd(0.005, 320).Validate(99.9).ok());
  const absl::Status status = Budget::Sgd(0.005, 320).Validate(100);
  EXPECT_THAT(std::string(status.message()), HasSubstr("just below 0.005"));
  EXPECT_THAT(std::string(Budget::Sgd(0.02, 10, 64, 32).Validate(1).message()),
              HasSubstr("0.015625"));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (double bad : {0.0, -1.0, nan, std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(Budget::Flow(bad).Validate(1).ok());
    EXPECT_FALSE(Budget::Sgd(bad, 10).Validate(1).ok());
    EXPECT_FALSE(Budget::Sgd(1e-3, 10, 64, bad).Validate(1).ok());
  }
  EXPECT_FALSE(Budget::Sgd(1e-3, 0).Validate(1).ok());
  EXPECT_FALSE(Budget::Sgd(1e-3, 10, 0).Validate(1).ok());
}

void ExpectAgrees(const Model& model, const oracle::Problem& problem, const Plan& plan) {
  const std::vector<double> have = model.NodeValues(plan);
  const std::vector<std::vector<oracle::Wide>> want = problem.NodeValues(plan);
  const int d = problem.dimensions();
  // Each node is made by a few roundings per step below it, all of them of positive terms.
  const double relative = 16.0 * problem.steps() * 0x1p-53;
  for (size_t node = 0; node < want.size(); ++node) {
    for (int k = 0; k < d; ++k) {
      const double exact = ToDouble(want[node][k]);
      // (1e-30: what p V + q leaves in the oracle where the value is 0.)
      ASSERT_NEAR(have[node * d + k], exact, relative * std::abs(exact) + 1e-30) << "node " << node;
    }
  }
  const std::vector<double> value = model.Value(plan);
  const std::vector<oracle::Wide> exact = problem.Value(plan);
  for (int k = 0; k < d; ++k) {
    ASSERT_NEAR(value[k], ToDouble(exact[k]), relative * std::abs(ToDouble(exact[k])) + 1e-30);
  }
  const double tolerance = model.Tolerance(value, model.spec().reference);
  ASSERT_NEAR(model.Objective(plan), ToDouble(problem.Objective(plan)), tolerance + 1e-60);
  // The definition's, and what the sum and the exponents of the gammas add to it.
  double expected = 0;
  for (int k = 0; k < d; ++k) {
    const double v = ToDouble(exact[k]), tau = ToDouble(problem.Tau(k));
    const double most = std::max(v, tau);
    double units = 16.0 * problem.steps() * most;
    for (int t = 1; t <= problem.steps(); ++t) {
      const double lost = 4 + 10 * problem.spec().train_time * ToDouble(problem.N(t, k));
      if (lost > 8)
        units += lost * std::min(most, ToDouble(problem.Gamma(t, k)) * std::max(1.0, most));
    }
    const double delta = 0x1p-53 * units, error = std::abs(ToDouble(problem.Tau(k) - exact[k]));
    const double weight = ToDouble(problem.weight(k));
    expected += weight * (2 * error * delta + delta * delta + (d + 4) * 0x1p-53 * error * error);
  }
  ASSERT_NEAR(tolerance, expected, 0.2 * tolerance + 1e-60);
  ASSERT_GE(tolerance, 0.8 * problem.Tolerance(plan) - 1e-60);
}

TEST(Model, AgreesWithTheOracleOnRandomPlans) {
  std::mt19937_64 rng(11);
  for (int trial = 0; trial < 400; ++trial) {
    const int T = RandomInt(rng, 1, 6), d = RandomInt(rng, 1, 4);
    const Schedule schedule = trial % 3 == 0   ? CosineSchedule(T)
                              : trial % 3 == 1 ? RandomPreserving(rng, T)
                                               : RandomFlow(rng, T);
    std::vector<double> lambda, weights;
    for (int k = 0; k < d; ++k) {
      lambda.push_back(LogUniform(rng, 1e-3, 1e3));
      weights.push_back(Uniform(rng, 0, 2));
    }
    if (trial % 7 == 0) lambda[0] = 0;
    if (trial % 11 == 0) lambda[0] = 1;
    const Init init = kInits[trial % 4];
    const Reference reference = kReferences[RandomInt(rng, 0, 2)];
    const double s = LogUniform(rng, 0.01, 10);
    const oracle::Problem problem = OracleProblem(schedule, lambda, s, init, reference, weights);
    ModelSpec spec = SpecOf(schedule, lambda, Budget::Flow(s), init, reference);
    spec.weights = weights;
    const Model model = Model::Create(spec).value();
    for (int k = 0; k < d; ++k) {
      for (Reference r : kReferences) {
        const double tau = ToDouble(problem.Tau(k, r));
        ASSERT_NEAR(model.tau(r)[k], tau, 8.0 * T * 0x1p-53 * tau);
      }
    }
    const std::vector<Plan>& plans =
        oracle::AllPlans(T, RandomInt(rng, 1, T), trial % 2 ? Space::kNary : Space::kBinary);
    for (int pick = 0; pick < 5; ++pick) {
      const Plan& plan = plans[RandomInt(rng, 0, static_cast<int>(plans.size()) - 1)];
      ASSERT_NO_FATAL_FAILURE(ExpectAgrees(model, problem, plan)) << "trial " << trial;
    }
  }
}

TEST(Model, AgreesWithTheOracleOnLongStrategies) {
  for (int T : {32, 257}) {
    for (Init init : kInits) {
      const std::vector<double> lambda = {79, 2, 1.02, 1, 0.2, 1e-3, 0};
      const Schedule schedule = CosineSchedule(T);
      const oracle::Problem problem = OracleProblem(schedule, lambda, 1.6, init);
      const Model model = Model::Create(SpecOf(schedule, lambda, Budget::Flow(1.6), init)).value();
      for (Strategy strategy : kStrategies) {
        for (int blocks : {1, 4}) {
          SCOPED_TRACE(std::string(ToString(init)) + " " + std::string(ToString(strategy)));
          ExpectAgrees(model, problem, CanonicalPlan(strategy, T, blocks).value());
        }
      }
    }
  }
}

// SGD differs from gradient flow in gamma alone.
TEST(Model, SgdTables) {
  const std::vector<double> lambda = {3, 0.5};
  const Schedule schedule = CosineSchedule(5);
  const Budget budget = Budget::Sgd(0.01, 50, 8, 2);
  for (Init init : kInits) {
    const Model model = Model::Create(SpecOf(schedule, lambda, budget, init)).value();
    oracle::ProblemSpec spec;
    spec.alpha = schedule.alpha;
    spec.sigma = schedule.sigma;
    spec.lambda = lambda;
    spec.init = init;
    for (int t = 1; t <= 5; ++t) {
      spec.gamma.emplace_back();
      for (double l : lambda) {
        const double n = std::pow(schedule.alpha[t], 2) * l + std::pow(schedule.sigma[t], 2);
        spec.gamma.back().push_back(std::pow(1 - 2 * 0.01 * 2 * n, 50));
      }
    }
    const oracle::Problem problem(spec);
    for (const Plan& plan : oracle::AllPlans(5, 1, Space::kNary)) {
      const std::vector<double> value = model.Value(plan);
      for (int k = 0; k < 2; ++k) {
        EXPECT_NEAR(value[k], ToDouble(problem.Value(plan)[k]), 1e-13 * value[k]);
      }
    }
  }
}

// Signed errors at T = 32, cosine, s = 1.6, lambda = 0.2, with each start.
TEST(Model, FourStartsExampleNumbers) {
  const struct {
    Init init;
    double boot, vanilla;
  } rows[] = {{Init::kChild, 0.015, 0.023},
              {Init::kTeacher, 0.202, 0.023},
              {Init::kJump, -0.101, -0.017},
              {Init::kChildJump, -0.012, -0.017}};
  for (const auto& row : rows) {
    SCOPED_TRACE(std::string(ToString(row.init)));
    const Model model =
        Model::Create(SpecOf(CosineSchedule(32), {0.2}, Budget::Flow(1.6), row.init)).value();
    const auto error = [&](Strategy strategy) {
      return model.Value(CanonicalPlan(strategy, 32).value())[0] - model.tau()[0];
    };
    EXPECT_NEAR(error(Strategy::kBoot), row.boot, 5e-4);
    EXPECT_NEAR(error(Strategy::kVanilla), row.vanilla, 5e-4);
  }
}

// Native units: a schedule that measures data in units of data_scale gives the same plan values and
// objectives larger by its square.
TEST(Model, NativeUnits) {
  Schedule scaled = CosineSchedule(6);
  scaled.data_scale = 0.5;
  ModelSpec native = SpecOf(scaled, {0.5, 0.05}, Budget::Flow(1), Init::kChild);
  native.weights = {1, 3};
  ModelSpec plain = SpecOf(CosineSchedule(6), {2, 0.2}, Budget::Flow(1), Init::kChild);
  plain.weights = {1, 3};
  const Model a = Model::Create(native).value(), b = Model::Create(plain).value();
  const Plan plan = CanonicalPlan(Strategy::kProgressive, 6).value();
  EXPECT_NEAR(a.Value(plan)[1], b.Value(plan)[1], 1e-15);
  EXPECT_NEAR(a.Objective(plan), 0.25 * b.Objective(plan), 1e-15);
}

TEST(Model, BadInputIsNamed) {
  const Schedule cosine = CosineSchedule(4);
  const auto message = [](const ModelSpec& spec) {
    return std::string(Model::Create(spec).status().message());
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto spec = [&](std::vector<double> lambda) {
    return SpecOf(cosine, std::move(lambda), Budget::Flow(1), Init::kChild);
  };
  EXPECT_THAT(message(spec({})), HasSubstr("none given"));
  EXPECT_THAT(message(spec({1, -2})), HasSubstr("variance 2 is -2"));
  EXPECT_THAT(message(spec({nan})), HasSubstr("variance 1 is nan"));
  EXPECT_THAT(message(spec({1, 1e308})), HasSubstr("variance 2 is 1e+308"));
  ModelSpec weights = spec({1, 2});
  weights.weights = {1};
  EXPECT_THAT(message(weights), HasSubstr("1 given for 2 variances"));
  weights.weights = {1, -1};
  EXPECT_THAT(message(weights), HasSubstr("weight 2 is -1"));
  ModelSpec flow = spec({1});
  flow.schedule = Arrays({1, 0.5, 0.1}, {0, 1, 2});
  flow.reference = Reference::kData;
  EXPECT_THAT(message(flow), HasSubstr("alpha_T^2 + sigma_T^2 is 4.01"));
  ModelSpec rate = spec({200});
  rate.budget = Budget::Sgd(0.005, 10);
  EXPECT_THAT(message(rate), HasSubstr("largest usable rate"));
  ModelSpec tiny = spec({0});
  tiny.schedule = Arrays({1, 0.5}, {0, 1e-200});
  EXPECT_THAT(message(tiny), HasSubstr("underflows"));
  tiny.schedule.sigma.pop_back();
  EXPECT_THAT(message(tiny), HasSubstr("schedule"));
}

TEST(Terms, WordsAreParsedBack) {
  for (Init init : kInits) EXPECT_EQ(ParseInit(ToString(init)).value(), init);
  for (Reference r : kReferences) EXPECT_EQ(ParseReference(ToString(r)).value(), r);
  for (Space s : {Space::kNary, Space::kBinary}) EXPECT_EQ(ParseSpace(ToString(s)).value(), s);
  for (Strategy s : kStrategies) EXPECT_EQ(ParseStrategy(ToString(s)).value(), s);
  EXPECT_THAT(std::string(ParseInit("kid").status().message()),
              HasSubstr("child, teacher, jump, child-jump"));
  EXPECT_THAT(std::string(ParseStrategy("bot").status().message()), HasSubstr("\"bot\""));
}

TEST(Canonical, PlansAsThePaperDrawsThem) {
  const auto text = [](Strategy s, int T, int blocks = 1) {
    return CanonicalPlan(s, T, blocks).value().ToString();
  };
  EXPECT_EQ(CanonicalPlan(Strategy::kVanilla, 5).value().size(), 1);
  EXPECT_EQ(CanonicalPlan(Strategy::kBoot, 5).value().size(), 4);
  EXPECT_EQ(CanonicalPlan(Strategy::kProgressive, 32).value().rounds(), 5);
  EXPECT_EQ(CanonicalPlan(Strategy::kConsistency, 1).value().size(), 0);
  // An odd step at the noisy end waits for the next level.
  const Plan odd = CanonicalPlan(Strategy::kProgressive, 5).value();
  std::vector<MergeSpec> specs = {{{1, 2}, {{1, 1}, {2, 2}}},
                                  {{3, 4}, {{3, 3}, {4, 4}}},
                                  {{1, 4}, {{1, 2}, {3, 4}}},
                                  {{1, 5}, {{1, 4}, {5, 5}}}};
  EXPECT_EQ(odd, Plan::Create(5, specs, {{Range{1, 5}}}).value())
      << text(Strategy::kProgressive, 5);
  const std::vector<Range> borders = {{1, 2}, {3, 5}, {6, 7}};  // 7/3 and 14/3, rounded
  EXPECT_EQ(EqualBlocks(7, 3), borders);
  EXPECT_EQ(CanonicalPlan(Strategy::kBoot, 7, 3).value().BlockRanges(), borders);
  EXPECT_FALSE(CanonicalPlan(Strategy::kBoot, 3, 4).ok());
  EXPECT_FALSE(CanonicalPlan(Strategy::kBoot, 3, 0).ok());
}

}  // namespace
}  // namespace mergeplan
