#include "planner/search/grouping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "planner/operators/canonical.h"
#include "planner/search/curvature.h"
#include "tests/oracle/enumerate.h"
#include "tests/planner/search/problems.h"

namespace mergeplan::search {
namespace {

// The second derivative of every plan's value, by differences in quadruple precision at several
// variances of the range, lies between the bounds; and the bounds are not far too wide.
TEST(Curvature, HoldsForEveryPlan) {
  std::mt19937_64 random(41);
  int wide = 0, all = 0;
  for (int trial = 0; trial < 250; ++trial) {
    RandomProblem problem = MakeRandomProblem(random, {1, 6, 1, 3});
    if (problem.oracle.reference == Reference::kData) continue;
    SCOPED_TRACE(problem.text);
    const double low = problem.oracle.lambda[0];
    const double high = low * std::uniform_real_distribution<double>(1, 1.3)(random);
    // Pairs of neighbours at a small distance h around five variances.
    constexpr double kStep = 1e-7;
    oracle::ProblemSpec spec = problem.oracle;
    spec.weights.clear();
    spec.lambda.clear();
    for (double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      const double middle = (low + (high - low) * share) / (1 + (share == 1.0 ? kStep : 0));
      for (double side : {-1.0, 0.0, 1.0})
        spec.lambda.push_back(std::max(low, middle) * (1 + kStep + side * kStep));
    }
    const oracle::Problem exact(spec);
    const absl::StatusOr<Model> model = Model::Create(ToModelSpec(problem.oracle));
    ASSERT_TRUE(model.ok()) << model.status();
    for (Shape shape : {Shape::kNary, Shape::kBinary}) {
      const Curvature bound =
          BoundCurvature(*model, low, high * (1 + 3 * kStep), shape, problem.blocks);
      EXPECT_LE(bound.least, bound.largest);
      double least = 1e300, largest = -1e300;
      for (const Plan& plan :
           oracle::AllPlans(model->steps(), problem.blocks,
                            shape == Shape::kNary ? Space::kNary : Space::kBinary)) {
        const std::vector<oracle::Wide> value = exact.Value(plan);
        for (std::size_t k = 0; k + 2 < value.size(); k += 3) {
          const oracle::Wide x0 = spec.lambda[k], x1 = spec.lambda[k + 1], x2 = spec.lambda[k + 2];
          const oracle::Wide second =
              2 *
              ((value[k + 2] - value[k + 1]) / (x2 - x1) - (value[k + 1] - value[k]) / (x1 - x0)) /
              (x2 - x0);
          least = std::min(least, oracle::ToDouble(second));
          largest = std::max(largest, oracle::ToDouble(second));
        }
      }
      const double slack = 1e-9 * (std::abs(bound.least) + std::abs(bound.largest)) + 1e-12;
      EXPECT_GE(least, bound.least - slack);
      EXPECT_LE(largest, bound.largest + slack);
      ++all;
      if (bound.largest - bound.least > 50 * (largest - least) + 1) ++wide;
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_LT(wide, all / 4);
}

RandomProblem ManyVariances(std::mt19937_64& random, int most_steps) {
  RandomProblem problem = MakeRandomProblem(random, {1, most_steps, 1, 3});
  const int d = std::uniform_int_distribution<int>(10, 40)(random);
  const double low = problem.oracle.lambda[0];
  const double ratio = std::uniform_real_distribution<double>(1.01, 4)(random);
  problem.oracle.lambda.clear();
  problem.oracle.weights.clear();
  for (int k = 0; k < d; ++k) {
    problem.oracle.lambda.push_back(
        low * std::pow(ratio, std::uniform_real_distribution<double>(0, 1)(random)));
    problem.oracle.weights.push_back(std::uniform_real_distribution<double>(0.1, 3)(random));
  }
  problem.model = ToModelSpec(problem.oracle);
  return problem;
}

// What the groups say of a plan is never above its objective, from either side of tau.
TEST(Grouping, IsBelowTheObjectiveOfEveryPlan) {
  std::mt19937_64 random(42);
  for (int trial = 0; trial < 120; ++trial) {
    const RandomProblem problem = ManyVariances(random, 6);
    SCOPED_TRACE(problem.text);
    const absl::StatusOr<Model> model = Model::Create(problem.model);
    if (!model.ok()) continue;
    const Plan reference = *CanonicalPlan(kStrategies[trial % 4], model->steps(), problem.blocks);
    const std::size_t most = std::uniform_int_distribution<std::size_t>(1, 12)(random);
    const std::optional<Grouping> groups = MakeGroups(*model, model->Value(reference), Shape::kNary,
                                                      problem.blocks, 0, most, 1, nullptr);
    ASSERT_TRUE(groups.has_value());
    double weight = 0;
    for (const Target& target : groups->targets) weight += target.weight;
    double expected = 0;
    for (double w : model->objective_weights()) expected += w;
    EXPECT_NEAR(weight, expected, 1e-9 * expected);
    for (const Plan& plan : oracle::AllPlans(model->steps(), problem.blocks, Space::kNary)) {
      const std::vector<double> value = model->Value(plan);
      const double objective = model->Objective(value, model->spec().reference);
      const double tolerance = model->Tolerance(value, model->spec().reference);
      const std::vector<double> grouped = groups->model.Value(plan);
      double up = 0, down = 0;
      for (const Target& target : groups->targets) {
        const double v = grouped[target.coordinate];
        up += target.weight * std::pow(std::max(0.0, target.tau_up - v), 2);
        down += target.weight * std::pow(std::max(0.0, v - target.tau_down), 2);
      }
      EXPECT_LE(up, objective + tolerance);
      EXPECT_LE(down, objective + tolerance);
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Grouping, OneGroupEachIsTheProblemItself) {
  ModelSpec spec;
  spec.schedule = CosineSchedule(6);
  for (int k = 0; k < 20; ++k) spec.variances.push_back(0.3 + 0.1 * k);
  spec.budget = Budget::Flow(1.6);
  const Model model = *Model::Create(std::move(spec));
  const Plan plan = *CanonicalPlan(Strategy::kVanilla, model.steps());
  const std::optional<Grouping> groups =
      MakeGroups(model, model.Value(plan), Shape::kNary, 1, 0, 1000, 1, nullptr);
  ASSERT_TRUE(groups.has_value());
  EXPECT_EQ(groups->targets.size(), DistinctTargets(model).size());
  EXPECT_NEAR(groups->loss, 0, 1e-15);
  for (const Target& target : groups->targets) {
    EXPECT_EQ(target.tau, target.tau_up);
    EXPECT_EQ(target.tau, target.tau_down);
  }
}

// The whole search with few groups: the certificate is never wrong, and what is called within the
// gap is.
TEST(Grouping, CertificatesAgainstEnumeration) {
  std::mt19937_64 random(44);
  int within = 0, all = 0;
  for (int trial = 0; trial < 150; ++trial) {
    const RandomProblem problem = ManyVariances(random, 6);
    SCOPED_TRACE(problem.text);
    const absl::StatusOr<Model> model = Model::Create(problem.model);
    if (!model.ok()) continue;
    SearchOptions options;
    options.student_steps = problem.blocks;
    options.groups = 1 + trial % 8;
    options.gap = trial % 3 == 0 ? 0.0 : 0.05;
    options.space = trial % 2 == 0 ? Space::kNary : Space::kBinary;
    const absl::StatusOr<SearchResult> result = Solve(*model, options);
    ASSERT_TRUE(result.ok()) << result.status();
    const oracle::Solution best =
        oracle::Solve(oracle::Problem(problem.oracle), problem.blocks, options.space);
    const double optimum = oracle::ToDouble(best.objective);
    EXPECT_LE(result->lower_bound, optimum * (1 + 1e-12)) << result->guarantee;
    EXPECT_GE(result->objective, optimum * (1 - 1e-12) - result->tolerance);
    if (result->status == SearchStatus::kWithinGap || result->status == SearchStatus::kOptimal) {
      EXPECT_LE(result->objective * (1 - options.gap), optimum + 2 * result->tolerance);
      ++within;
    }
    ++all;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(within, all / 5);
}

}  // namespace
}  // namespace mergeplan::search
