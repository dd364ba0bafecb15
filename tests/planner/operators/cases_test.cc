// The 28 solved cases: the oracle and the model both reproduce them.

#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/operators/canonical.h"
#include "planner/operators/model.h"
#include "tests/oracle/algorithm1.h"
#include "tests/oracle/cases.h"
#include "tests/oracle/enumerate.h"
#include "tests/oracle/problem.h"

namespace mergeplan {
namespace {

using oracle::SmallCase;
using oracle::ToDouble;

// The file holds float64 roundings of 60 digits, the oracle has 34.
void ExpectSame(double want, double have) { EXPECT_NEAR(have, want, 4e-16 * std::abs(want)); }

class SmallCases : public testing::Test {
 protected:
  void SetUp() override {
    std::string missing;
    cases_ = oracle::LoadSmallCases(&missing);
    if (cases_.empty()) GTEST_SKIP() << "the solved cases are absent: " << missing;
  }

  std::vector<SmallCase> cases_;
};

TEST_F(SmallCases, OracleReproducesTauAndStrategies) {
  EXPECT_EQ(cases_.size(), 28u);
  for (const SmallCase& c : cases_) {
    SCOPED_TRACE(c.id);
    const oracle::Problem problem(c.problem);
    for (int k = 0; k < problem.dimensions(); ++k) ExpectSame(c.tau[k], ToDouble(problem.Tau(k)));
    for (Strategy strategy : kStrategies) {
      const Plan plan = CanonicalPlan(strategy, c.steps()).value();
      ExpectSame(c.canonical.at(std::string(ToString(strategy))),
                 ToDouble(problem.Objective(plan)));
    }
  }
}

TEST_F(SmallCases, OracleReproducesOptima) {
  for (const SmallCase& c : cases_) {
    if (c.steps() > 8) continue;
    const oracle::Problem problem(c.problem);
    for (Space space : {Space::kNary, Space::kBinary}) {
      SCOPED_TRACE(c.id + " " + std::string(ToString(space)));
      const oracle::Solution solution = Solve(problem, c.blocks, space);
      const SmallCase::Optimum& want = c.optimum(space);
      ExpectSame(want.objective, ToDouble(solution.objective));
      EXPECT_EQ(solution.plans, static_cast<size_t>(want.plans));
      EXPECT_EQ(solution.ties, static_cast<size_t>(want.ties));
      EXPECT_EQ(solution.has_runner_up, want.has_runner_up);
      if (want.has_runner_up) ExpectSame(want.runner_up, ToDouble(solution.runner_up));
      if (want.unique) {
        EXPECT_EQ(solution.plan, want.plan)
            << solution.plan.ToString() << " for " << want.plan.ToString();
      }
      ExpectSame(want.objective, ToDouble(problem.Objective(want.plan)));
      EXPECT_NEAR(problem.Tolerance(want.plan), want.tolerance, 1e-15 * want.tolerance);
      const std::vector<oracle::Wide> value = problem.Value(want.plan);
      for (size_t k = 0; k < value.size(); ++k) ExpectSame(want.value[k], ToDouble(value[k]));
    }
  }
}

TEST_F(SmallCases, ModelReproducesTauAndStrategies) {
  for (const SmallCase& c : cases_) {
    SCOPED_TRACE(c.id);
    ModelSpec spec;
    spec.schedule.spec = spec.schedule.name = "arrays";
    spec.schedule.alpha = c.problem.alpha;
    spec.schedule.sigma = c.problem.sigma;
    spec.schedule.level_scale.assign(c.problem.alpha.size(), 1.0);
    spec.variances = c.problem.lambda;
    spec.weights = c.problem.weights;
    spec.budget = Budget::Flow(c.problem.train_time);
    spec.reference = c.problem.reference;
    const absl::StatusOr<Model> model = Model::Create(spec);
    ASSERT_TRUE(model.ok()) << model.status();
    for (int k = 0; k < model->dimensions(); ++k) {
      EXPECT_NEAR(model->tau()[k], c.tau[k], 2 * c.steps() * 0x1p-53 * c.tau[k]);
    }
    for (Strategy strategy : kStrategies) {
      const Plan plan = CanonicalPlan(strategy, c.steps()).value();
      EXPECT_NEAR(model->Objective(plan), c.canonical.at(std::string(ToString(strategy))),
                  model->Tolerance(model->Value(plan), c.problem.reference));
    }
    for (const Space space : {Space::kNary, Space::kBinary}) {
      const SmallCase::Optimum& want = c.optimum(space);
      EXPECT_NEAR(model->Objective(want.plan), want.objective, want.tolerance);
    }
  }
}

TEST_F(SmallCases, Algorithm1FindsTheBinaryOptimumWhereItsPreferenceHolds) {
  int checked = 0;
  for (const SmallCase& c : cases_) {
    const bool preserving = [&] {
      for (size_t t = 0; t < c.problem.alpha.size(); ++t) {
        if (std::abs(std::hypot(c.problem.alpha[t], c.problem.sigma[t]) - 1) > 1e-12) return false;
      }
      return true;
    }();
    if (c.blocks != 1 || c.problem.reference != Reference::kSurrogate || !preserving) continue;
    SCOPED_TRACE(c.id);
    const oracle::Problem problem(c.problem);
    const oracle::Algorithm1Result result = Algorithm1(problem);
    ExpectSame(c.binary.objective, ToDouble(result.objective));
    EXPECT_EQ(result.objective, problem.Objective(result.plan));
    ++checked;
  }
  EXPECT_GE(checked, 10);
}

}  // namespace
}  // namespace mergeplan
