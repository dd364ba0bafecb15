#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "planner/operators/canonical.h"
#include "planner/search/search.h"
#include "tests/oracle/enumerate.h"
#include "tests/planner/search/problems.h"

namespace mergeplan {
namespace {

// Every kind of problem against the enumeration of all plans: the certificate is never wrong, and a
// plan that is called optimal is.
void Compare(int count, std::uint64_t seed, const RandomRange& range, double gap) {
  std::mt19937_64 random(seed);
  for (int k = 0; k < count; ++k) {
    const RandomProblem problem = MakeRandomProblem(random, range);
    SCOPED_TRACE(problem.text);
    absl::StatusOr<Model> model = Model::Create(problem.model);
    if (!model.ok()) {  // the data reference has no meaning for some
      EXPECT_EQ(problem.oracle.reference, Reference::kData) << model.status();
      continue;
    }
    const oracle::Problem exact(problem.oracle);
    for (Space space : {Space::kNary, Space::kBinary}) {
      SearchOptions options;
      options.student_steps = problem.blocks;
      options.space = space;
      options.gap = gap;
      options.threads = 1 + k % 2;
      absl::StatusOr<SearchResult> result = Solve(*model, options);
      ASSERT_TRUE(result.ok()) << result.status();
      const oracle::Solution best = oracle::Solve(exact, problem.blocks, space);
      const double optimum = oracle::ToDouble(best.objective);
      const double found = oracle::ToDouble(exact.Objective(result->plan));
      const double tolerance = std::max(best.tolerance, exact.Tolerance(result->plan));
      SCOPED_TRACE(best.plan.ToString());
      ExpectCertificateHolds(*result, problem.blocks, gap, optimum, found, tolerance);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(AgainstEnumeration, ThousandsOfSmallProblems) { Compare(2500, 20260101, {1, 6, 3, 3}, 0); }
TEST(AgainstEnumeration, LongerOnes) { Compare(60, 20260102, {7, 8, 5, 3}, 0); }

// A coarse pass only: the bound that slack leaves must hold too. The effort limit of the first pass
// would solve small problems exactly, so this goes through more dimensions.
TEST(AgainstEnumeration, WithAGap) { Compare(150, 20260103, {5, 7, 12, 2}, 0.2); }

// Limits on merges and rounds, against the best of the plans that keep them.
TEST(AgainstEnumeration, LimitsOnMergesAndRounds) {
  std::mt19937_64 random(20260104);
  int binding = 0;
  for (int k = 0; k < 500; ++k) {
    const RandomProblem problem = MakeRandomProblem(random, {2, 6, 3, 3});
    SCOPED_TRACE(problem.text);
    const absl::StatusOr<Model> model = Model::Create(problem.model);
    if (!model.ok()) continue;
    SearchOptions options;
    options.gap = k % 3 == 0 ? 0.05 : 0;
    options.student_steps = problem.blocks;
    options.space = k % 2 == 0 ? Space::kNary : Space::kBinary;
    options.max_merges = std::uniform_int_distribution<int>(0, 4)(random);
    options.max_rounds = std::uniform_int_distribution<int>(0, 3)(random);
    const oracle::Problem exact(problem.oracle);
    const Plan* best = nullptr;
    oracle::Wide optimum = 0, unlimited = 0;
    for (const Plan& plan : oracle::AllPlans(model->steps(), problem.blocks, options.space)) {
      const oracle::Wide objective = exact.Objective(plan);
      if (&plan == &oracle::AllPlans(model->steps(), problem.blocks, options.space)[0] ||
          objective < unlimited) {
        unlimited = objective;
      }
      if (options.max_merges > 0 && plan.size() > options.max_merges) continue;
      if (options.max_rounds > 0 && plan.rounds() > options.max_rounds) continue;
      if (best != nullptr && !(objective < optimum)) continue;
      best = &plan;
      optimum = objective;
    }
    ASSERT_NE(best, nullptr);
    const absl::StatusOr<SearchResult> result = Solve(*model, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(options.max_merges == 0 || result->plan.size() <= options.max_merges);
    EXPECT_TRUE(options.max_rounds == 0 || result->plan.rounds() <= options.max_rounds);
    const double tolerance = std::max(exact.Tolerance(*best), exact.Tolerance(result->plan));
    const double least = oracle::ToDouble(optimum);
    EXPECT_LE(result->lower_bound, least * (1 + 1e-12)) << result->guarantee;
    EXPECT_LE(oracle::ToDouble(exact.Objective(result->plan)) * (1 - options.gap),
              least * (1 + 1e-12) + 2 * tolerance)
        << result->plan.ToString() << " against " << best->ToString();
    if (options.gap == 0) {
      EXPECT_EQ(result->status, SearchStatus::kOptimal) << result->guarantee;
    }
    if (oracle::ToDouble(unlimited) < least * (1 - 1e-6)) ++binding;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(binding, 50);
}

Model MakeModel(std::vector<double> variances, std::vector<double> weights, int steps,
                double time) {
  ModelSpec spec;
  spec.schedule = CosineSchedule(steps);
  spec.variances = std::move(variances);
  spec.weights = std::move(weights);
  spec.budget = Budget::Flow(time);
  return *Model::Create(std::move(spec));
}

double Best(const Model& model, int blocks = 1, Space space = Space::kNary) {
  SearchOptions options;
  options.gap = 0;
  options.student_steps = blocks;
  options.space = space;
  const SearchResult result = *Solve(model, options);
  EXPECT_EQ(result.status, SearchStatus::kOptimal) << result.guarantee;
  return result.objective;
}

TEST(Properties, OrderAndDoublingOfDimensions) {
  std::mt19937_64 random(7);
  for (int k = 0; k < 20; ++k) {
    std::vector<double> variances, weights;
    const int d = 2 + k % 4;
    for (int x = 0; x < d; ++x) {
      variances.push_back(std::uniform_real_distribution<double>(0.2, 3)(random));
      weights.push_back(std::uniform_real_distribution<double>(0.5, 2)(random));
    }
    const double once = Best(MakeModel(variances, weights, 12, 0.8));
    std::vector<int> order(d);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    std::vector<double> v2, w2, v3 = variances, w3 = weights;
    for (int x : order) {
      v2.push_back(variances[x]);
      w2.push_back(weights[x]);
    }
    EXPECT_NEAR(Best(MakeModel(v2, w2, 12, 0.8)), once, 1e-12 * once + 1e-18);
    v3.push_back(variances[0]);  // the first dimension twice ...
    w3.push_back(weights[0]);
    std::vector<double> w4 = weights;
    w4[0] *= 2;  // ... or with twice its weight
    EXPECT_NEAR(Best(MakeModel(v3, w3, 12, 0.8)), Best(MakeModel(variances, w4, 12, 0.8)),
                1e-12 * once + 1e-18);
  }
}

TEST(Properties, NaryIsNeverWorseThanBinaryNorThanTheCanonicalStrategies) {
  std::mt19937_64 random(8);
  for (int k = 0; k < 20; ++k) {
    std::vector<double> variances;
    for (int x = 0; x <= k % 3; ++x)
      variances.push_back(std::uniform_real_distribution<double>(0.1, 3)(random));
    const int steps = 6 + k;
    const Model model = MakeModel(variances, {}, steps, 0.3 + 0.1 * k);
    const double nary = Best(model);
    EXPECT_LE(nary, Best(model, 1, Space::kBinary) * (1 + 1e-12) + 1e-18);
    const double two = Best(model, 2);
    for (Strategy s : kStrategies) {
      EXPECT_LE(nary, model.Objective(*CanonicalPlan(s, steps)) * (1 + 1e-12) + 1e-18);
      EXPECT_LE(two, model.Objective(*CanonicalPlan(s, steps, 2)) * (1 + 1e-12) + 1e-18);
    }
  }
}

// A random plan over first..last, by cutting it into random parts.
Range RandomNode(PlanBuilder& builder, int first, int last, std::mt19937_64& random) {
  if (first == last) return PlanBuilder::Step(first);
  std::vector<Range> children;
  const double p = std::uniform_real_distribution<double>(0.05, 0.9)(random);
  int begin = first;
  for (int t = first; t <= last; ++t) {
    const bool must = t == last - 1 && begin == first;
    if (t == last || must || std::bernoulli_distribution(p)(random)) {
      children.push_back(RandomNode(builder, begin, t, random));
      begin = t + 1;
    }
  }
  return builder.Merge(std::move(children));
}

TEST(Properties, NoRandomPlanBeatsAReportedOptimum) {
  std::mt19937_64 random(9);
  for (int k = 0; k < 5; ++k) {
    const int steps = 16 + 4 * k;
    const Model model = MakeModel({0.6, 1.1, 1.9, 4.0}, {}, steps, 0.5 + 0.4 * k);
    const double best = Best(model);
    for (int trial = 0; trial < 400; ++trial) {
      PlanBuilder builder(steps);
      const Range top = RandomNode(builder, 1, steps, random);
      const Plan plan = *builder.Finish({top});
      EXPECT_GE(model.Objective(plan), best * (1 - 1e-12)) << plan.ToString();
    }
  }
}

}  // namespace
}  // namespace mergeplan
