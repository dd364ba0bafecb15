#include "planner/search/shared_time.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/operators/canonical.h"
#include "planner/operators/regimes.h"
#include "planner/search/grouping.h"
#include "planner/search/shared/allocate.h"
#include "planner/search/shared/borders.h"
#include "planner/search/shared/dropped.h"
#include "planner/search/shared/ends.h"
#include "planner/search/shared/proposals.h"
#include "planner/search/shared/tree.h"
#include "tests/oracle/enumerate.h"
#include "tests/planner/search/problems.h"

namespace mergeplan {
namespace {

using search::SharedProblem;
using search::SharedTree;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

SearchOptions Options(int blocks = 1) {
  SearchOptions options;
  options.student_steps = blocks;
  options.threads = 1;
  return options;
}

Model CosineModel(int steps, std::vector<double> variances, Init init = Init::kChild,
                  Reference reference = Reference::kSurrogate, Budget budget = Budget::Flow(1.0)) {
  ModelSpec spec;
  spec.schedule = CosineSchedule(steps);
  spec.variances = std::move(variances);
  spec.budget = budget;
  spec.init = init;
  spec.reference = reference;
  return *Model::Create(spec);
}

std::vector<double> LogSpaced(double low, double high, int count) {
  std::vector<double> out;
  for (int k = 0; k < count; ++k) {
    out.push_back(low * std::pow(high / low, static_cast<double>(k) / (count - 1)));
  }
  return out;
}

// A point of the simplex: uniform, near a corner, or a corner.
std::vector<double> RandomShares(std::mt19937_64& random, int merges) {
  std::vector<double> out(merges);
  const int style = std::uniform_int_distribution<int>(0, 3)(random);
  double sum = 0;
  for (double& x : out) {
    x = std::exponential_distribution<double>(1)(random);
    if (style == 1) x = std::pow(x, 6);
    sum += x;
  }
  for (double& x : out) x /= sum;
  if (style == 2 && merges > 0) {
    std::fill(out.begin(), out.end(), 0.0);
    out[std::uniform_int_distribution<int>(0, merges - 1)(random)] = 1;
  }
  return out;
}

std::vector<double> Amounts(const std::vector<double>& shares, double total) {
  std::vector<double> out = shares;
  for (double& x : out) x *= total;
  return out;
}

// The student's value with a training of its own for each merge, from the definitions, in quadruple
// precision: the oracle's merge at its own gamma gives away where the merge starts.
std::vector<double> PlainValue(const oracle::ProblemSpec& spec, const Plan& plan,
                               const std::vector<double>& time) {
  oracle::ProblemSpec slow = spec;
  slow.train_time = 0.1;
  const oracle::Problem problem(slow);
  const int T = problem.steps();
  std::vector<double> out;
  for (int k = 0; k < static_cast<int>(spec.lambda.size()); ++k) {
    std::vector<oracle::Wide> node;
    for (int t = 1; t <= T; ++t) node.push_back(problem.A(t, k));
    for (int m = 0; m < plan.size(); ++m) {
      const Merge& merge = plan.merges()[m];
      oracle::Wide product = 1;
      for (int child : merge.children) product *= node[child];
      const Range last = plan.range(merge.children.back());
      const oracle::Wide gamma = problem.Gamma(merge.last, k);
      const oracle::Wide merged = problem.Merge(merge.first, last.first - 1, merge.last, product,
                                                node[merge.children.back()], k);
      const oracle::Wide start = (merged - (1 - gamma) * product) / gamma;
      const double n = spec.alpha[merge.last] * spec.alpha[merge.last] * spec.lambda[k] +
                       spec.sigma[merge.last] * spec.sigma[merge.last];
      const oracle::Wide own = std::exp(-2 * time[m] * n);
      node.push_back((1 - own) * product + own * start);
    }
    oracle::Wide value = 1;
    for (int block : plan.blocks()) value *= node[block];
    out.push_back(oracle::ToDouble(value));
  }
  return out;
}

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

// Every point of a grid on the simplex.
void ForGrid(int merges, int cells, std::vector<int>& at,
             const std::function<void(const std::vector<int>&)>& visit) {
  if (static_cast<int>(at.size()) == merges - 1) {
    at.push_back(cells);
    visit(at);
    at.pop_back();
    return;
  }
  for (int c = 0; c <= cells; ++c) {
    at.push_back(c);
    ForGrid(merges, cells - c, at, visit);
    at.pop_back();
  }
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
      const SharedAllocation found = *AllocateSharedTime(model, plan, total, Options());
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
    const SharedAllocation found = *AllocateSharedTime(model, plan, total, Options());
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

// Bounds hold for every plan and allocation: the heart of the certificate.
TEST(SharedTimeBounds, HoldForAllPlansAndAllocations) {
  std::mt19937_64 random(5);
  std::int64_t samples = 0;
  int tight = 0, joint = 0;
  for (int n = 0; n < 1500; ++n) {
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
      bound = search::DroppedStepsBound(shared, ends, border, kInfinity, {});
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
  EXPECT_GT(samples, 40000);
  EXPECT_GT(tight, 300);  // the bounds say something
  EXPECT_GT(joint, 30);
}

TEST(SharedTimeBounds, WholeProblemsAgainstAllPlans) {
  std::mt19937_64 random(6);
  int optimal = 0;
  for (int n = 0; n < 250; ++n) {
    const RandomProblem problem = MakeRandomProblem(
        random, {.least_steps = 1, .most_steps = 5, .most_dimensions = 4, .most_blocks = 3});
    const Model model = *Model::Create(problem.model);
    const double total = problem.oracle.train_time;
    const SharedTimeResult result = *SolveSharedTime(model, total, Options(problem.blocks));
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
    const double slack = std::max(1e-4, Options().gap) * result.objective + result.tolerance;
    EXPECT_LE(result.objective, best + slack)
        << problem.text << " " << best_plan << " against " << result.plan.ToString();
    if (result.status == SharedTimeStatus::kOptimal) {
      ++optimal;
      EXPECT_LE(result.objective, best + 2 * result.tolerance) << problem.text << best_plan;
    }
  }
  EXPECT_GT(optimal, 80);
}

TEST(SharedTime, VanillaIsProvenBestWithOneBlock) {
  for (Init init : {Init::kJump, Init::kChildJump}) {
    for (Reference reference : {Reference::kSurrogate, Reference::kTeacher}) {
      const Model model = CosineModel(16, LogSpaced(0.05, 20, 12), init, reference);
      const SharedTimeResult result = *SolveSharedTime(model, 2.0, Options());
      EXPECT_EQ(result.status, SharedTimeStatus::kOptimal);
      EXPECT_EQ(result.plan, *CanonicalPlan(Strategy::kVanilla, 16));
      EXPECT_THAT(result.guarantee, HasSubstr("vanilla with the whole total; proven"));
    }
  }
  // Under child and teacher where no variance lies between 1 and max lambda_0, mixed.
  const double largest = RangeOfLambda0(CosineSchedule(16)).largest;
  for (Init init : {Init::kChild, Init::kTeacher}) {
    const Model model = CosineModel(16, {0.1, 0.6, 1.0, largest + 1e-6, 3, 20}, init);
    const SharedTimeResult result = *SolveSharedTime(model, 2.0, Options());
    EXPECT_EQ(result.status, SharedTimeStatus::kOptimal) << result.guarantee;
    EXPECT_EQ(result.plan, *CanonicalPlan(Strategy::kVanilla, 16));
    EXPECT_EQ(result.plans, 1);
  }
}

TEST(SharedTime, VanillaBeatsBootWithEqualSharesAtEqualTotals) {
  const Plan vanilla = *CanonicalPlan(Strategy::kVanilla, 32);
  const Plan boot = *CanonicalPlan(Strategy::kBoot, 32);
  for (Init init : {Init::kChild, Init::kTeacher, Init::kJump, Init::kChildJump}) {
    for (double total : {1.0, 3.0, 6.0}) {
      const Model model = CosineModel(32, {0.2}, init);
      const auto objective = [&](const Plan& plan) {
        return model.Objective(
            *SharedTimeValue(model, plan, std::vector<double>(plan.size(), total / plan.size())));
      };
      EXPECT_LT(objective(vanilla), 0.9 * objective(boot)) << std::string(ToString(init)) << total;
    }
  }
}

// One variance between 1 and max lambda_0: merges without training drop the steps that shrink.
TEST(SharedTime, OneVarianceIsSolvedByDroppingSteps) {
  for (double lambda : {1.02, 1.2, 1.3, 1.7}) {
    for (Init init : {Init::kChild, Init::kTeacher}) {
      const Model model = CosineModel(32, {lambda}, init);
      const SharedTimeResult result = *SolveSharedTime(model, 49.6, Options());
      EXPECT_LE(result.gap(), 1e-6) << lambda << " " << result.guarantee;
      EXPECT_LT(result.objective, result.vanilla_objective);
    }
  }
}

TEST(SharedTime, MixedSpectraAreCertifiedWithinPerCents) {
  const struct {
    double low, high, total;
    int d, blocks;
    double most_objective, most_gap;
  } cases[] = {{0.2, 5, 49.6, 128, 1, 1.8549e-3, 0.04},
               {0.5, 2, 49.6, 128, 1, 3.740e-3, 0.02},
               {0.95, 1.05, 198.4, 2, 1, 1.2746e-4, 0.001},
               {0.2, 5, 8, 128, 4, 1.8539e-3, 0.04}};
  for (const auto& c : cases) {
    const Model model = CosineModel(32, LogSpaced(c.low, c.high, c.d));
    const SharedTimeResult result = *SolveSharedTime(model, c.total, Options(c.blocks));
    EXPECT_LE(result.objective, c.most_objective);
    EXPECT_LE(result.gap(), c.most_gap) << result.guarantee;
    EXPECT_LT(result.objective, result.vanilla_objective);
  }
}

TEST(SharedTime, BordersOfVanillaBlocksAreExact) {
  std::mt19937_64 random(7);
  for (int n = 0; n < 40; ++n) {
    const double low = std::uniform_real_distribution<double>(0.02, 0.5)(random);
    const int T = std::uniform_int_distribution<int>(5, 8)(random);
    const Init init = n % 2 == 0 ? Init::kChildJump : Init::kChild;
    const Model model = CosineModel(T, LogSpaced(low, n % 4 == 0 ? 5.0 : 0.9, 3), init);
    SearchOptions options = Options(3);
    options.gap = 1e-6;
    const double total = std::uniform_real_distribution<double>(0.3, 3)(random);
    const SharedTimeResult result = *SolveSharedTime(model, total, options);
    EXPECT_LE(result.gap(), 1e-6) << result.guarantee;
    // Against all plans of three blocks.
    const SharedProblem shared(model, total);
    for (const Plan& plan : oracle::AllPlans(T, 3, Space::kNary)) {
      SharedTree tree(shared, plan);
      for (int r = 0; r < 2; ++r) {
        ASSERT_GE(tree.Objective(RandomShares(random, plan.size()), nullptr), result.lower_bound);
      }
    }
  }
}

TEST(SharedTimeSgd, UpdatesAreWholeAndNoExchangeHelps) {
  std::mt19937_64 random(8);
  for (int n = 0; n < 60; ++n) {
    const int T = std::uniform_int_distribution<int>(3, 5)(random);
    const int blocks = std::uniform_int_distribution<int>(1, 2)(random);
    const auto init = static_cast<Init>(n % 4);
    const Model model =
        CosineModel(T, {0.3, 1.2, 1.6}, init, Reference::kSurrogate, Budget::Sgd(0.05, 1, 64, 1));
    const std::int64_t K = std::uniform_int_distribution<int>(1, 40)(random);
    SearchOptions options = Options(blocks);
    options.gap = 0;
    const SharedTimeResult result = *SolveSharedTime(model, static_cast<double>(K), options);
    ASSERT_EQ(result.allocation.updates.size(), static_cast<std::size_t>(result.plan.size()));
    std::int64_t sum = 0;
    for (std::int64_t u : result.allocation.updates) {
      EXPECT_GE(u, 0);
      sum += u;
    }
    EXPECT_EQ(sum, K);
    const auto objective = [&](const Plan& plan, const std::vector<std::int64_t>& updates) {
      return model.Objective(
          *SharedTimeValue(model, plan, std::vector<double>(updates.begin(), updates.end())));
    };
    EXPECT_NEAR(objective(result.plan, result.allocation.updates), result.objective,
                result.tolerance);
    ASSERT_TRUE(result.allocation.exchanged);
    for (std::size_t from = 0; from < result.allocation.updates.size(); ++from) {
      for (std::size_t to = 0; to < result.allocation.updates.size(); ++to) {
        std::vector<std::int64_t> updates = result.allocation.updates;
        if (from == to || updates[from] == 0) continue;
        --updates[from], ++updates[to];
        EXPECT_GE(objective(result.plan, updates), result.objective - result.tolerance);
      }
    }
    // All whole allocations of small plans.
    if (K > 12 || T > 4) continue;
    for (const Plan& plan : oracle::AllPlans(T, blocks, Space::kNary)) {
      if (plan.size() == 0) continue;
      std::vector<int> at;
      ForGrid(plan.size(), static_cast<int>(K), at, [&](const std::vector<int>& grid) {
        EXPECT_GE(objective(plan, {grid.begin(), grid.end()}), result.lower_bound);
      });
    }
  }
}

TEST(SharedTimeSgd, AgreesWithTheModelsBudget) {
  const Budget budget = Budget::Sgd(0.01, 37, 64, 2);
  const Model model = CosineModel(6, {0.4, 2}, Init::kTeacher, Reference::kSurrogate, budget);
  const Plan plan = *CanonicalPlan(Strategy::kProgressive, 6);
  const std::vector<double> value =
      *SharedTimeValue(model, plan, std::vector<double>(plan.size(), 37.0));
  for (int k = 0; k < 2; ++k) EXPECT_NEAR(value[k], model.Value(plan)[k], 1e-14);
}

TEST(SharedTime, NothingToMerge) {
  for (int T : {1, 5}) {
    const Model model = CosineModel(T, {0.3, 1.5});
    const SharedTimeResult result = *SolveSharedTime(model, 2.0, Options(T));
    EXPECT_EQ(result.plan.size(), 0);
    EXPECT_TRUE(result.allocation.shares.empty());
    EXPECT_EQ(result.objective, model.Objective(result.plan));
    EXPECT_EQ(result.status, T == 1 ? SharedTimeStatus::kOptimal : result.status);
  }
}

TEST(SharedTime, LimitsAreKept) {
  const Model model = CosineModel(12, LogSpaced(0.5, 2, 6));
  SearchOptions options = Options();
  options.max_merges = 1;
  EXPECT_EQ(SolveSharedTime(model, 10, options)->plan.size(), 1);
  options.max_merges = 0, options.max_rounds = 2;
  EXPECT_LE(SolveSharedTime(model, 10, options)->plan.rounds(), 2);
  options.max_rounds = 0, options.space = Space::kBinary;
  for (const Merge& merge : SolveSharedTime(model, 10, options)->plan.merges()) {
    EXPECT_TRUE(merge.children.size() == 2 || merge.round == 1);
  }
  options = Options(4);
  options.max_merges = 1;
  EXPECT_EQ(SolveSharedTime(model, 10, options)->plan.size(), 1);
  EXPECT_EQ(SolveSharedTime(model, 10, options)->plan.student_steps(), 4);
}

TEST(SharedTime, IsDeterministicOnAnyNumberOfThreads) {
  const Model model = CosineModel(20, LogSpaced(0.4, 2.5, 40));
  SearchOptions options = Options();
  const SharedTimeResult one = *SolveSharedTime(model, 12, options);
  options.threads = 3;
  const SharedTimeResult three = *SolveSharedTime(model, 12, options);
  EXPECT_EQ(one.plan, three.plan);
  EXPECT_EQ(one.allocation.shares, three.allocation.shares);
  EXPECT_EQ(one.objective, three.objective);
  EXPECT_EQ(one.lower_bound, three.lower_bound);
}

TEST(SharedTime, StopsWithWhatThereIs) {
  const Model model = CosineModel(64, LogSpaced(0.3, 3, 64));
  SearchOptions options = Options();
  options.interrupted = [] { return true; };
  const SharedTimeResult interrupted = *SolveSharedTime(model, 30, options);
  EXPECT_EQ(interrupted.status, SharedTimeStatus::kInterrupted);
  EXPECT_LE(interrupted.lower_bound, interrupted.objective);
  EXPECT_TRUE(std::isfinite(interrupted.objective));
  options.interrupted = nullptr;
  options.time_limit_seconds = 1e-9;
  for (int blocks : {1, 3}) {
    options.student_steps = blocks;
    const SharedTimeResult late = *SolveSharedTime(model, 30, options);
    EXPECT_EQ(late.status, SharedTimeStatus::kTimeLimit);
    EXPECT_TRUE(std::isfinite(late.objective));
  }
}

TEST(SharedTime, ProgressShowsTheGapShrinking) {
  const Model model = CosineModel(24, LogSpaced(0.5, 2, 16));
  SearchOptions options = Options();
  std::vector<SearchProgress> told;
  options.progress = [&](const SearchProgress& progress) { told.push_back(progress); };
  const SharedTimeResult result = *SolveSharedTime(model, 20, options);
  ASSERT_GE(told.size(), 2u);
  for (std::size_t n = 1; n < told.size(); ++n) {
    EXPECT_LE(told[n].objective, told[n - 1].objective);
    EXPECT_GE(told[n].lower_bound, told[n - 1].lower_bound - result.tolerance);
  }
  EXPECT_EQ(told.back().objective, result.objective);
}

TEST(SharedTime, ErrorsNameWhatIsWrong) {
  const Model model = CosineModel(4, {0.5});
  const auto message = [](const auto& result) { return std::string(result.status().message()); };
  for (double total : {0.0, -1.0, std::nan(""), kInfinity}) {
    EXPECT_THAT(message(SolveSharedTime(model, total, Options())), HasSubstr("positive, finite"));
  }
  const Model sgd =
      CosineModel(4, {0.5}, Init::kChild, Reference::kSurrogate, Budget::Sgd(0.01, 1));
  EXPECT_THAT(message(SolveSharedTime(sgd, 10.5, Options())), HasSubstr("whole number"));
  EXPECT_THAT(message(SolveSharedTime(model, 1, Options(5))), HasSubstr("student steps is 5"));
  SearchOptions options = Options();
  options.gap = 1;
  EXPECT_THAT(message(SolveSharedTime(model, 1, options)), HasSubstr("gap is 1"));
  options = Options();
  options.max_rounds = -1;
  EXPECT_THAT(message(SolveSharedTime(model, 1, options)), HasSubstr("-1 rounds"));
  options = Options();
  options.time_limit_seconds = 0;
  EXPECT_THAT(message(SolveSharedTime(model, 1, options)), HasSubstr("time limit"));
  const Plan other = *CanonicalPlan(Strategy::kBoot, 5);
  EXPECT_THAT(message(AllocateSharedTime(model, other, 1, Options())), HasSubstr("5 steps"));
  const Plan plan = *CanonicalPlan(Strategy::kBoot, 4);
  EXPECT_THAT(message(SharedTimeValue(model, plan, {1, 2})), HasSubstr("2 amounts"));
  EXPECT_THAT(message(SharedTimeValue(model, plan, {1, -2, 0})), HasSubstr("merge 2 is -2"));
  ModelTables tables;
  tables.steps = 2;
  tables.dimensions = 1;
  tables.a = {0.5, 0.5};
  tables.gamma = {0.1, 0.1};
  const Model bare = *Model::FromTables(tables);
  EXPECT_EQ(SolveSharedTime(bare, 1, Options()).status().code(),
            absl::StatusCode::kFailedPrecondition);
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
