#include "planner/search/two_columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/oracle/enumerate.h"
#include "tests/planner/search/problems.h"

namespace mergeplan::search {
namespace {

// A problem of two variances that the pass is for, with targets moved by `shift`.
std::vector<Target> Targets(const Model& model, double shift) {
  std::vector<Target> targets;
  for (int k = 0; k < 2; ++k) {
    const double tau = model.tau()[k] + shift;
    targets.push_back({k, model.objective_weights()[k], tau, tau, tau});
  }
  return targets;
}

// Against all plans: the least tangent is found to the last digits, for any point of tangency and
// threshold, and no objective is below it.
TEST(TwoColumns, FindsTheLeastTangentOfAllPlans) {
  std::mt19937_64 random(31);
  int looked = 0, reached = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    RandomProblem problem = MakeRandomProblem(random, {2, 7, 2, 3});
    problem.model.init = Init::kChild;
    SCOPED_TRACE(problem.text);
    const absl::StatusOr<Model> model = Model::Create(problem.model);
    if (!model.ok() || model->dimensions() != 2) continue;
    const double shift = trial % 3 == 0 ? 0.0 : trial % 3 == 1 ? 3.0 : -3.0;
    const std::optional<Bounds> bounds = Bounds::Make(*model, Targets(*model, shift), Shape::kNary,
                                                      problem.blocks, true, 1, nullptr);
    ASSERT_TRUE(bounds.has_value());
    if (!TwoColumns::Applies(*model, *bounds)) continue;
    ++looked;
    const Columns& columns = bounds->columns;
    const auto error = [&](const std::vector<double>& value, int c) {
      return columns.root_weight[c] * columns.sign[c] *
             (columns.tau[c] - value[columns.coordinate[c]]);
    };
    const std::vector<Plan>& plans = oracle::AllPlans(model->steps(), problem.blocks, Space::kNary);
    const std::vector<double> some = model->Value(
        plans[std::uniform_int_distribution<std::size_t>(0, plans.size() - 1)(random)]);
    std::array<double, 2> tangent, errors;
    for (int c = 0; c < 2; ++c) {
      errors[c] = std::max(0.0, error(some, c));
      tangent[c] = errors[c] * (trial % 2 == 0 ? 1 : Uniform(random, 0, 3));
    }
    double least = std::numeric_limits<double>::infinity(), objective = least, tolerance = 0;
    double largest = -least;
    for (const Plan& plan : plans) {
      const std::vector<double> value = model->Value(plan);
      double l = 0, f = 0, size = 0;
      for (int c = 0; c < 2; ++c) {
        const double e = error(value, c);
        l += tangent[c] * (2 * e - tangent[c]);
        f += std::max(0.0, e) * std::max(0.0, e);
        size += (std::abs(e) + tangent[c]) * columns.root_weight[c] *
                (std::abs(columns.tau[c]) + value[columns.coordinate[c]]);
      }
      EXPECT_LE(l, f + 1e-15 * size);
      least = std::min(least, l);
      largest = std::max(largest, l);
      objective = std::min(objective, f);
      tolerance = std::max(tolerance, 16 * model->steps() * 0x1p-53 * size);
    }
    const double threshold = trial % 5 < 2 ? std::numeric_limits<double>::infinity()
                                           : least + Uniform(random, -0.1, 0.5) * (largest - least);
    TwoColumns pass(*model, *bounds);
    ASSERT_TRUE(pass.Run(tangent, threshold, 1'000'000, nullptr));
    EXPECT_NEAR(pass.LowerBound(), std::min(least, threshold), tolerance);
    EXPECT_LE(pass.LowerBound(), objective + tolerance);
    const std::optional<Plan> plan = pass.BestPlan();
    EXPECT_EQ(plan.has_value(), pass.LowerBound() < threshold);
    if (plan) {
      ++reached;
      EXPECT_EQ(plan->student_steps(), problem.blocks);
      const std::vector<double> value = model->Value(*plan);
      double l = 0;
      for (int c = 0; c < 2; ++c) l += tangent[c] * (2 * error(value, c) - tangent[c]);
      EXPECT_LT(l, threshold + tolerance);
    }
    // The next point of tangency: as near as any plan that was seen, and nearer to the bound.
    const std::array<double, 2> next = pass.Nearest(errors);
    const double nearest = next[0] * next[0] + next[1] * next[1];
    EXPECT_LE(nearest, errors[0] * errors[0] + errors[1] * errors[1]);
    if (plan && shift == 0) {
      EXPECT_LE(nearest, model->Objective(*plan) + tolerance);
    }
    EXPECT_GE(nearest, pass.LowerBound() - tolerance);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(looked, 500);
  EXPECT_GT(reached, 300);
}

TEST(TwoColumns, EndsWhereItIsTold) {
  ModelSpec spec;
  spec.schedule = CosineSchedule(24);
  spec.variances = {1.05, 1.5};
  spec.budget = Budget::Flow(6.4);
  const Model model = *Model::Create(std::move(spec));
  const std::optional<Bounds> bounds =
      Bounds::Make(model, Targets(model, 0), Shape::kNary, 1, true, 1, nullptr);
  ASSERT_TRUE(bounds.has_value());
  ASSERT_TRUE(TwoColumns::Applies(model, *bounds));
  TwoColumns pass(model, *bounds);
  const std::array<double, 2> tangent = {0.01, 0.01};
  const double all = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(pass.Run(tangent, all, 1000, nullptr));
  EXPECT_FALSE(pass.Run(tangent, all, 1'000'000'000, [] { return true; }));
  EXPECT_TRUE(pass.Run(tangent, all, 1'000'000'000, [] { return false; }));
}

// What it is not for: other starts, other spaces, more columns.
TEST(TwoColumns, KnowsWhatItIsFor) {
  const auto applies = [](const std::vector<double>& variances, Init init, Shape shape) {
    ModelSpec spec;
    spec.schedule = CosineSchedule(8);
    spec.variances = variances;
    spec.budget = Budget::Flow(2);
    spec.init = init;
    const Model model = *Model::Create(std::move(spec));
    std::vector<Target> targets;
    targets.reserve(variances.size());
    for (int k = 0; k < model.dimensions(); ++k) {
      targets.push_back({k, 1, model.tau()[k], model.tau()[k], model.tau()[k]});
    }
    return TwoColumns::Applies(model, *Bounds::Make(model, targets, shape, 1, true, 1, nullptr));
  };
  EXPECT_TRUE(applies({0.9, 1.4}, Init::kChild, Shape::kNary));
  EXPECT_FALSE(applies({0.9, 1.4}, Init::kChild, Shape::kBinary));
  EXPECT_FALSE(applies({0.9, 1.4}, Init::kTeacher, Shape::kNary));
  EXPECT_FALSE(applies({0.9, 1.4}, Init::kChildJump, Shape::kNary));
  EXPECT_FALSE(applies({0.9, 1.2, 1.4}, Init::kChild, Shape::kNary));
}

// Problems with thousands of plans that are nearly as good as the best: the same optimum as the
// passes of any number of columns find (limits that bind nobody leave the work to them).
TEST(TwoColumns, AgreesWithTheGeneralPassesWhereManyPlansAreNearlyTheBest) {
  std::mt19937_64 random(32);
  for (int trial = 0; trial < 40; ++trial) {
    ModelSpec spec;
    const int steps = std::uniform_int_distribution<int>(8, 18)(random);
    spec.schedule = CosineSchedule(steps);
    const double first = Uniform(random, 0.9, 1.2);
    spec.variances = {first, first + Uniform(random, 0.02, 0.8)};
    if (trial % 4 == 0) spec.weights = {Uniform(random, 0.1, 10), Uniform(random, 0.1, 10)};
    spec.budget = Budget::Flow(Uniform(random, 1, 8));
    SCOPED_TRACE(absl::StrCat("T=", steps, " lambda=", spec.variances[0], ",", spec.variances[1]));
    const Model model = *Model::Create(std::move(spec));
    SearchOptions options;
    options.gap = 0;
    options.student_steps = 1 + trial % 3;
    const SearchResult fast = *Solve(model, options);
    options.max_merges = steps;
    const SearchResult slow = *Solve(model, options);
    EXPECT_EQ(fast.status, SearchStatus::kOptimal) << fast.guarantee;
    EXPECT_EQ(slow.status, SearchStatus::kOptimal) << slow.guarantee;
    EXPECT_NEAR(fast.objective, slow.objective, 2 * fast.tolerance);
    EXPECT_LE(fast.lower_bound, slow.objective);
    EXPECT_LE(fast.objective - fast.lower_bound, 2 * fast.tolerance);
  }
}

}  // namespace
}  // namespace mergeplan::search
