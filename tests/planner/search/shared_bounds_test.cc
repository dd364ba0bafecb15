#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/operators/canonical.h"
#include "planner/search/grouping.h"
#include "planner/search/shared/allocate.h"
#include "planner/search/shared/borders.h"
#include "planner/search/shared/dropped.h"
#include "planner/search/shared/ends.h"
#include "planner/search/shared/proposals.h"
#include "planner/search/shared/tree.h"
#include "planner/search/shared_time.h"
#include "tests/oracle/enumerate.h"
#include "tests/planner/search/problems.h"
#include "tests/planner/search/sharing.h"

// One total of training for all merges: values, gradients, allocations and bounds against plain
// evaluations, grids and all plans.

namespace mergeplan {
namespace {

using search::SharedProblem;
using search::SharedTree;

TEST(SharedTimeValue, EqualsThePlainEvaluation) {
  std::mt19937_64 random(1);
  for (int n = 0; n < 400; ++n) {
    const RandomProblem problem = MakeRandomProblem(random, {.least_steps = 2, .most_steps = 6});
    const Model model = *Model::Create(problem.model);
    const std::vector<Plan>& plans = oracle::AllPlans(model.steps(), problem.blocks, Space::kNary);
    const Plan& plan =
        plans[std::uniform_int_distribution<std::size_t>(0, plans.size() - 1)(random)];
    const std::vector<double> amounts =
        Amounts(RandomShares(random, plan.size()), problem.oracle.train_time);
    const std::vector<double> value = *SharedTimeValue(model, plan, amounts);
    const std::vector<double> plain = PlainValue(problem.oracle, plan, amounts);
    for (std::size_t k = 0; k < value.size(); ++k) {
      ASSERT_NEAR(value[k], plain[k], 1e-13 * std::max(1.0, plain[k]))
          << problem.text << " " << plan.ToString();
    }
  }
}

TEST(SharedTimeValue, WithTheSameForEachMergeIsTheModelsValue) {
  const Model model = CosineModel(9, {0.3, 1.0, 1.4, 6}, Init::kChildJump);
  for (Strategy strategy : kStrategies) {
    const Plan plan = *CanonicalPlan(strategy, 9, 2);
    const std::vector<double> value =
        *SharedTimeValue(model, plan, std::vector<double>(plan.size(), 1.0));
    for (int k = 0; k < 4; ++k) EXPECT_NEAR(value[k], model.Value(plan)[k], 1e-15);
  }
}

TEST(SharedTree, GradientEqualsDifferences) {
  std::mt19937_64 random(2);
  int compared = 0;
  for (int n = 0; n < 600; ++n) {
    const RandomProblem problem = MakeRandomProblem(random, {.least_steps = 2, .most_steps = 7});
    const Model model = *Model::Create(problem.model);
    const std::vector<Plan>& plans = oracle::AllPlans(model.steps(), problem.blocks, Space::kNary);
    const Plan& plan =
        plans[std::uniform_int_distribution<std::size_t>(0, plans.size() - 1)(random)];
    const double total = std::min(problem.oracle.train_time, 4.0);
    const SharedProblem shared(model, total);
    SharedTree tree(shared, plan);
    std::vector<double> x(plan.size()), gradient(plan.size());
    for (double& share : x) share = std::uniform_real_distribution<double>(0.01, 1)(random);
    const double objective = tree.Objective(x, gradient.data());
    ASSERT_EQ(objective, tree.Objective(x, nullptr));
    double scale = 0;
    for (std::size_t k = 0; k < shared.width(); ++k) {
      scale += shared.weight[k] * (1 + shared.tau[k]) * (1 + shared.tau[k]);
    }
    for (int m = 0; m < plan.size(); ++m) {
      // Fourth order, so that large variances do no harm.
      double n_largest = 0;
      for (int k = 0; k < model.dimensions(); ++k) {
        n_largest = std::max(n_largest, -shared.Rate(plan.merges()[m].last)[k]);
      }
      const double h = 2e-3 / std::max(1.0, n_largest * total);
      const auto at = [&](double by) {
        std::vector<double> y = x;
        y[m] += by * h;
        return tree.Objective(y, nullptr);
      };
      const double slope = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h);
      ASSERT_NEAR(gradient[m], slope, 1e-9 * scale / h * 2e-3 + 1e-7 * std::abs(slope))
          << problem.text << " " << plan.ToString() << " merge " << m;
      ++compared;
    }
  }
  EXPECT_GT(compared, 800);
}

TEST(AllocateSharedTime, BeatsAFineGridOnTinyPlans) {
  std::mt19937_64 random(3);
  int plans_tried = 0;
  for (int n = 0; n < 150; ++n) {
    const RandomProblem problem = MakeRandomProblem(random, {.least_steps = 3, .most_steps = 4});
    const Model model = *Model::Create(problem.model);
    const double total = problem.oracle.train_time;
    const SharedProblem shared(model, total);
    for (const Plan& plan : oracle::AllPlans(model.steps(), problem.blocks, Space::kNary)) {
      if (plan.size() < 2) continue;
      const SharedAllocation found = *AllocateSharedTime(model, plan, total, SharingOptions());
      double sum = 0;
      for (double share : found.shares) {
        EXPECT_GE(share, 0);
        sum += share;
      }
      EXPECT_NEAR(sum, 1, 1e-12);
      SharedTree tree(shared, plan);
      double best = kInfinity;
      std::vector<int> at;
      const int cells = plan.size() == 2 ? 200 : 30;
      ForGrid(plan.size(), cells, at, [&](const std::vector<int>& grid) {
        std::vector<double> x(grid.begin(), grid.end());
        for (double& share : x) share /= cells;
        best = std::min(best, tree.Objective(x, nullptr));
      });
      const double tolerance =
          model.Tolerance(*SharedTimeValue(model, plan, Amounts(found.shares, total)));
      EXPECT_LE(found.objective, best * (1 + 1e-7) + tolerance)
          << problem.text << " total=" << total << " " << plan.ToString();
      if (found.convex) {
        EXPECT_GE(best, found.objective - found.stationarity - tolerance)
            << problem.text << " " << plan.ToString();
      }
      ++plans_tried;
    }
  }
  EXPECT_GT(plans_tried, 500);
}

// The claim of borders.h: between vanilla blocks the objective is convex in the shares.
TEST(AllocateSharedTime, BlocksOfVanillaHaveNoBetterAllocation) {
  std::mt19937_64 random(4);
  int convex = 0;
  for (int n = 0; n < 300; ++n) {
    RandomProblem problem = MakeRandomProblem(random, {.least_steps = 4, .most_steps = 9});
    const int blocks = std::uniform_int_distribution<int>(2, 4)(random);
    const Model model = *Model::Create(problem.model);
    const Plan plan = *CanonicalPlan(Strategy::kVanilla, model.steps(), blocks);
    const double total = problem.oracle.train_time;
    const SharedAllocation found = *AllocateSharedTime(model, plan, total, SharingOptions());
    if (!found.convex) continue;
    ++convex;
    const SharedProblem shared(model, total);
    SharedTree tree(shared, plan);
    const double tolerance =
        model.Tolerance(*SharedTimeValue(model, plan, Amounts(found.shares, total)));
    for (int r = 0; r < 100; ++r) {
      ASSERT_GE(tree.Objective(RandomShares(random, plan.size()), nullptr),
                found.objective - found.stationarity - tolerance)
          << problem.text;
    }
  }
  EXPECT_GT(convex, 60);
}

// The bound is of all allocations, from whichever point it is taken.
TEST(SharedTimeBounds, OfVanillaBlocksHoldFromEveryPoint) {
  std::mt19937_64 random(9);
  int compared = 0, says_something = 0;
  for (int n = 0; n < 6000; ++n) {
    const RandomProblem problem =
        MakeRandomProblem(random, {.least_steps = 4, .most_steps = 9, .most_dimensions = 3});
    const Model model = *Model::Create(problem.model);
    // Little training, so that high variances stay below half of tau.
    const SharedProblem shared(model, 0.3 * problem.oracle.train_time,
                               search::DistinctTargets(model));
    const search::VanillaSides sides = search::WhereVanillaIsExtreme(shared);
    if (!sides.everywhere) continue;
    const int blocks = std::uniform_int_distribution<int>(2, 4)(random);
    SharedTree tree(shared, *CanonicalPlan(Strategy::kVanilla, model.steps(), blocks));
    double highest = 0, best = kInfinity;
    for (int r = 0; r < 4; ++r) {
      const search::Allocation at = search::Descend(tree, RandomShares(random, tree.merges()),
                                                    r < 2 ? 1 : 60, 1e-9, 1e-300, {});
      highest = std::max(highest, search::VanillaLowerBound(tree, at, sides));
      best = std::min(best, at.objective);
    }
    for (int r = 0; r < 60; ++r) {
      const double objective = tree.Objective(RandomShares(random, tree.merges()), nullptr);
      ASSERT_GE(objective, highest - 1e-13 * (1 + objective)) << problem.text << " " << blocks;
      best = std::min(best, objective);
    }
    ++compared;
    says_something += highest >= 0.99 * best;
  }
  EXPECT_GT(compared, 2000);
  EXPECT_GT(says_something, compared / 2);
}

// Bounds hold for every plan and allocation: the heart of the certificate.
TEST(SharedTimeBounds, HoldForAllPlansAndAllocations) {
  std::mt19937_64 random(5);
  std::int64_t samples = 0;
  int tight = 0, joint = 0;
  for (int n = 0; n < 6000; ++n) {
    const RandomProblem problem = MakeRandomProblem(
        random, {.least_steps = 2, .most_steps = 5, .most_dimensions = 4, .most_blocks = 3});
    const Model model = *Model::Create(problem.model);
    const double total = problem.oracle.train_time;
    const SharedProblem shared(model, total, search::DistinctTargets(model));
    const search::Ends ends = search::EndsOfValues(shared, problem.blocks, 1, {});
    const double alone = search::DistanceToEnds(shared, ends);
    double bound = alone;
    if (model.init() == Init::kChild || model.init() == Init::kTeacher) {
      const double border =
          n % 2 == 0 ? 1.0 : model.lambda()[n % static_cast<int>(model.lambda().size())];
      bound = search::DroppedStepsBound(shared, problem.blocks, ends, border, kInfinity, {});
      joint += bound > alone * (1 + 1e-6) + 1e-12;
    }
    double best = kInfinity;
    for (const Plan& plan : oracle::AllPlans(model.steps(), problem.blocks, Space::kNary)) {
      SharedTree tree(shared, plan);
      const int draws = plan.size() == 0 ? 1 : 3;
      for (int r = 0; r < draws; ++r) {
        // The total need not be used up for the bounds to hold.
        std::vector<double> shares = RandomShares(random, plan.size());
        if (r == 2) {
          for (double& share : shares) share *= 0.7;
        }
        const std::vector<double> value = tree.Value(shares);
        for (std::size_t k = 0; k < value.size(); ++k) {
          const double rounding = 1e-13 * std::max(1.0, value[k]);
          ASSERT_GE(value[k], ends.low[k] - rounding) << problem.text << " " << plan.ToString();
          ASSERT_LE(value[k], ends.high[k] + rounding) << problem.text << " " << plan.ToString();
        }
        const double objective = tree.Objective(shares, nullptr);
        ASSERT_GE(objective, bound - 1e-13 * (1 + objective) - 1e-10 * bound)
            << problem.text << " " << plan.ToString();
        best = std::min(best, objective);
        ++samples;
      }
    }
    tight += best <= bound * 1.01 + 1e-12;
  }
  EXPECT_GT(samples, 160000);
  EXPECT_GT(tight, 1200);  // the bounds say something
  EXPECT_GT(joint, 120);
}

TEST(SharedTimeBounds, WholeProblemsAgainstAllPlans) {
  std::mt19937_64 random(6);
  int optimal = 0;
  for (int n = 0; n < 2000; ++n) {
    const RandomProblem problem = MakeRandomProblem(
        random, {.least_steps = 1, .most_steps = 5, .most_dimensions = 4, .most_blocks = 3});
    const Model model = *Model::Create(problem.model);
    const double total = problem.oracle.train_time;
    const SharedTimeResult result = *SolveSharedTime(model, total, SharingOptions(problem.blocks));
    ASSERT_EQ(result.plan.student_steps(), problem.blocks);
    ASSERT_LE(result.lower_bound, result.objective);
    ASSERT_LE(result.objective, result.vanilla_objective + result.tolerance) << problem.text;
    ASSERT_EQ(result.allocation.shares.size(), static_cast<std::size_t>(result.plan.size()));
    const std::vector<double> value =
        PlainValue(problem.oracle, result.plan, Amounts(result.allocation.shares, total));
    EXPECT_NEAR(model.Objective(value), result.objective,
                1e-11 * result.objective + 2 * result.tolerance);
    const SharedProblem shared(model, total);
    double best = kInfinity;
    std::string best_plan;
    for (const Plan& plan : oracle::AllPlans(model.steps(), problem.blocks, Space::kNary)) {
      SharedTree tree(shared, plan);
      for (int r = 0; r < 4; ++r) {
        const std::vector<double> shares =
            search::Descend(tree, RandomShares(random, plan.size()), 25, 1e-6, 1e-300, {}).shares;
        const double objective = tree.Objective(shares, nullptr);
        if (objective < best) best = objective, best_plan = plan.ToString();
      }
    }
    ASSERT_LE(result.lower_bound, best) << problem.text << " " << best_plan;
    // Not promised, but so it is.
    const double slack = std::max(1e-4, SharingOptions().gap) * result.objective + result.tolerance;
    EXPECT_LE(result.objective, best + slack)
        << problem.text << " " << best_plan << " against " << result.plan.ToString();
    if (result.status == SharedTimeStatus::kOptimal) {
      ++optimal;
      EXPECT_LE(result.objective, best + 2 * result.tolerance) << problem.text << best_plan;
    }
  }
  EXPECT_GT(optimal, 640);
}

TEST(SharedTime, LocalChangesArePlansWithTheirShares) {
  const Plan plan = *CanonicalPlan(Strategy::kProgressive, 12, 2);
  const search::SharedPlan from{plan, std::vector<double>(plan.size(), 1.0 / plan.size())};
  const std::vector<search::SharedPlan> changes = search::LocalChanges(from, 10000);
  EXPECT_GE(changes.size(), 18u);
  for (const search::SharedPlan& change : changes) {
    EXPECT_NE(change.plan, plan);
    EXPECT_EQ(change.plan.student_steps(), 2);
    ASSERT_EQ(change.shares.size(), static_cast<std::size_t>(change.plan.size()));
    double sum = 0;
    for (double share : change.shares) sum += share;
    EXPECT_NEAR(sum, 1, 1e-12);
  }
  EXPECT_EQ(search::LocalChanges(from, 7).size(), 7u);
}

}  // namespace
}  // namespace mergeplan
