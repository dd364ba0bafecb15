#include "planner/search/two_columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
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

// A random problem of two variances that the pass is for, with its targets where they are, above or
// below.
struct Pair {
  RandomProblem problem;
  std::unique_ptr<const Model> model;  // stays where it is
  std::optional<Bounds> bounds;
  double shift = 0;
};
std::optional<Pair> MakePair(std::mt19937_64& random, int trial) {
  Pair pair{MakeRandomProblem(random, {2, 7, 2, 3}), nullptr, {}, 0};
  pair.problem.model.init = Init::kChild;
  absl::StatusOr<Model> model = Model::Create(pair.problem.model);
  if (!model.ok() || model->dimensions() != 2) return std::nullopt;
  pair.model = std::make_unique<const Model>(*std::move(model));
  pair.shift = trial % 3 == 0 ? 0.0 : trial % 3 == 1 ? 3.0 : -3.0;
  pair.bounds = Bounds::Make(*pair.model, Targets(*pair.model, pair.shift), Shape::kNary,
                             pair.problem.blocks, true, 1, nullptr);
  EXPECT_TRUE(pair.bounds.has_value()) << pair.problem.text;
  if (!pair.bounds || !TwoColumns::Applies(*pair.model, *pair.bounds)) return std::nullopt;
  return pair;
}

// Against all plans: the least tangent is found to the last digits, for any point of tangency and
// threshold, and no objective is below it.
TEST(TwoColumns, FindsTheLeastTangentOfAllPlans) {
  std::mt19937_64 random(31);
  int looked = 0, reached = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const std::optional<Pair> pair = MakePair(random, trial);
    if (!pair) continue;
    SCOPED_TRACE(pair->problem.text);
    const RandomProblem& problem = pair->problem;
    const Model* model = pair->model.get();
    const Bounds* bounds = &*pair->bounds;
    const double shift = pair->shift;
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

// The pass through the lens finds the least objective of all plans, whatever tangent left it and
// however wide it is.
TEST(TwoColumns, LooksThroughTheLensForTheBestPlan) {
  std::mt19937_64 random(33);
  int looked = 0, inside = 0, found = 0;
  for (int trial = 0; trial < 6000; ++trial) {
    const std::optional<Pair> pair = MakePair(random, trial);
    if (!pair) continue;
    SCOPED_TRACE(pair->problem.text);
    const RandomProblem& problem = pair->problem;
    const Model* model = pair->model.get();
    const Bounds* bounds = &*pair->bounds;
    const double shift = pair->shift;
    ++looked;
    const Columns& columns = bounds->columns;
    const std::vector<Plan>& plans = oracle::AllPlans(model->steps(), problem.blocks, Space::kNary);
    std::vector<std::array<double, 2>> errors;
    std::vector<double> objectives;
    double tolerance = 0;
    for (const Plan& plan : plans) {
      const std::vector<double> value = model->Value(plan);
      std::array<double, 2> e;
      double size = 0;
      for (int c = 0; c < 2; ++c) {
        const double v = value[columns.coordinate[c]];
        e[c] = std::max(0.0, columns.root_weight[c] * columns.sign[c] * (columns.tau[c] - v));
        size += (e[c] + 1e-8) * columns.root_weight[c] * (std::abs(columns.tau[c]) + v);
      }
      errors.push_back(e);
      objectives.push_back(e[0] * e[0] + e[1] * e[1]);
      tolerance = std::max(tolerance, 32 * model->steps() * 0x1p-53 * size);
    }
    std::vector<double> sorted = objectives;
    std::sort(sorted.begin(), sorted.end());
    const double best = sorted[0];
    // Tangents at plans, good ones and any, and at points beside them.
    const std::size_t nearest = static_cast<std::size_t>(
        std::min_element(objectives.begin(), objectives.end()) - objectives.begin());
    const std::size_t any = std::uniform_int_distribution<std::size_t>(0, plans.size() - 1)(random);
    std::array<double, 2> tangent = errors[trial % 2 == 0 ? nearest : any];
    if (trial % 4 > 1) tangent[trial % 2] *= Uniform(random, 0, 2);
    double least = std::numeric_limits<double>::infinity();
    for (const std::array<double, 2>& e : errors) {
      least = std::min(least,
                       tangent[0] * (2 * e[0] - tangent[0]) + tangent[1] * (2 * e[1] - tangent[1]));
    }
    inside += least < best - tolerance ? 1 : 0;
    double threshold = std::numeric_limits<double>::infinity();
    if (trial % 5 == 1) threshold = best * (1 + 1e-6) + tolerance;
    if (trial % 5 == 2) threshold = sorted[sorted.size() / 8] + tolerance;
    if (trial % 5 == 3) threshold = best * 0.9;
    if (trial % 5 == 4) threshold = sorted[sorted.size() / 2] + tolerance;
    TwoColumns pass(*model, *bounds);
    ASSERT_TRUE(pass.Lens(tangent, least - tolerance, threshold, 1'000'000, nullptr));
    EXPECT_NEAR(pass.LowerBound(), std::min(best, threshold), tolerance);
    const std::optional<Plan> plan = pass.BestPlan();
    EXPECT_EQ(plan.has_value(), pass.LowerBound() < threshold);
    if (plan && shift == 0) {
      ++found;
      EXPECT_NEAR(model->Objective(*plan), best, tolerance);
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(looked, 1000);
  EXPECT_GT(inside, 200);
  EXPECT_GT(found, 150);
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
  EXPECT_FALSE(pass.Lens(tangent, -1, all, 1000, nullptr));
  EXPECT_FALSE(pass.Lens(tangent, -1, all, 1'000'000'000, [] { return true; }));
}

// Plans inside the hull, which no tangent proves: exactly all the same, and what passes of any
// number of columns find (the limits bind nobody, but leave the work to them).
TEST(TwoColumns, ProvesPlansInsideTheHull) {
  std::mt19937_64 random(34);
  int compared = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const int steps = std::uniform_int_distribution<int>(8, 13)(random);
    ModelSpec spec;
    spec.schedule = CosineSchedule(steps);
    const double first = Uniform(random, 0.92, 1.06);
    spec.variances = {first, first + Uniform(random, 0.05, 0.8)};
    spec.budget = Budget::Flow(Uniform(random, 1, 8));
    const Model model = *Model::Create(std::move(spec));
    SearchOptions options;
    options.gap = 0;
    options.student_steps = 1 + trial % 4;
    const SearchResult fast = *Solve(model, options);
    EXPECT_EQ(fast.status, SearchStatus::kOptimal) << fast.guarantee;
    options.max_merges = steps;
    const SearchResult slow = *Solve(model, options);
    if (slow.status != SearchStatus::kOptimal) continue;
    ++compared;
    EXPECT_NEAR(fast.objective, slow.objective, 2 * fast.tolerance);
    EXPECT_LE(fast.lower_bound, slow.objective);
  }
  EXPECT_GT(compared, 50);
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
