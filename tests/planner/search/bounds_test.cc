#include <gtest/gtest.h>

#include <random>

#include "planner/search/bounds.h"
#include "planner/search/kernels.h"
#include "tests/oracle/enumerate.h"
#include "tests/planner/search/problems.h"

namespace mergeplan::search {
namespace {

Columns AllUp(const Model& model, double sign) {
  Columns columns;
  for (int k = 0; k < model.dimensions(); ++k) {
    columns.coordinate.push_back(k);
    columns.sign.push_back(sign);
    columns.root_weight.push_back(std::sqrt(model.objective_weights()[k]));
    columns.tau.push_back(model.tau()[k]);
  }
  return columns;
}

// For every plan and each of its nodes: the node's value lies within its ends, and the chord at
// that value is not above the plan's signed error, whichever way is better.
TEST(Bounds, HoldForEveryNodeOfEveryPlan) {
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 60; ++trial) {
    const RandomProblem problem = MakeRandomProblem(random, {2, 6, 2, 3});
    SCOPED_TRACE(problem.text);
    absl::StatusOr<Model> model = Model::Create(problem.model);
    if (!model.ok()) continue;
    const int T = model->steps();
    const Intervals at(T);
    for (Shape shape : {Shape::kNary, Shape::kBinary}) {
      for (double sign : {1.0, -1.0}) {
        const Columns columns = AllUp(*model, sign);
        const ColumnTables tables(*model, columns);
        const Inside inside(*model, columns, tables, shape, problem.blocks, 1, nullptr);
        const Outside outside(*model, columns, tables, inside, shape, problem.blocks, 1, nullptr);
        for (const Plan& plan : oracle::AllPlans(
                 T, problem.blocks, shape == Shape::kNary ? Space::kNary : Space::kBinary)) {
          const std::vector<double> carried = model->CarriedNodeValues(plan);
          const std::vector<double> value = model->Value(plan);
          for (int node = 0; node < T + plan.size(); ++node) {
            const Range range = plan.range(node);
            // Single steps inside a merge of all steps have no other value: their bound is never
            // asked for.
            if (range.single()) continue;
            const std::size_t ij = at(range.first, range.last);
            for (std::size_t c = 0; c < columns.size(); ++c) {
              const double x = carried[static_cast<std::size_t>(node) * columns.size() + c];
              const double slack = 1e-12 * (1 + std::abs(x));
              EXPECT_GE(x, inside.s_lo[ij][c] - slack);
              EXPECT_LE(x, inside.s_hi[ij][c] + slack);
              const double error = columns.root_weight[c] * sign * (columns.tau[c] - value[c]);
              EXPECT_LE(
                  outside.s_a[ij][c] + outside.s_b[ij][c] * x,
                  error + 1e-12 * (1 + columns.tau[c] + value[c]) * (1 + columns.root_weight[c]));
            }
          }
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

// The clones, the blocks and the early end change no digit.
TEST(Kernels, AgreeWithPlainLoops) {
  std::mt19937_64 random(12);
  std::uniform_real_distribution<double> uniform(0.1, 2);
  for (std::size_t n : {1u, 7u, 8u, 63u, 64u, 65u, 200u}) {
    std::vector<double> u(n), v(n), omg(n), g(n), a(n), b(n), sign(n), x(n);
    for (std::size_t c = 0; c < n; ++c) {
      u[c] = uniform(random);
      v[c] = uniform(random);
      g[c] = uniform(random) / 2;
      omg[c] = 1 - g[c];
      a[c] = uniform(random) - 1;
      b[c] = uniform(random) - 1;
      sign[c] = c % 3 == 0 ? -1 : 1;
    }
    CandidateRule rule;
    rule.ju = 0.25;
    rule.jv = 0.5;
    rule.juv = 0.75;
    rule.merge = true;
    rule.omg = omg.data();
    rule.g = g.data();
    CandidateValue(n, rule, u.data(), v.data(), x.data());
    double sum = 0;
    for (std::size_t c = 0; c < n; ++c) {
      const double product = 0.25 * u[c] + 0.5 * v[c] + 0.75 * (u[c] * v[c]);
      EXPECT_DOUBLE_EQ(x[c], omg[c] * product + g[c] * v[c]);
      const double e = std::max(0.0, a[c] + b[c] * x[c]);
      sum += e * e;
    }
    EXPECT_NEAR(RowBound(n, x.data(), a.data(), b.data()), sum, 1e-12 * sum + 1e-15);
    EXPECT_NEAR(CandidateBound(n, rule, u.data(), v.data(), a.data(), b.data(), 1e300), sum,
                1e-12 * sum + 1e-15);
    if (sum > 0) {
      EXPECT_GT(CandidateBound(n, rule, u.data(), v.data(), a.data(), b.data(), sum / 2), sum / 2);
    }
    EXPECT_TRUE(Dominates(n, x.data(), x.data(), sign.data()));
    std::vector<double> better = x;
    Absorb(n, better.data(), u.data(), sign.data());
    EXPECT_TRUE(Dominates(n, better.data(), x.data(), sign.data()));
    EXPECT_TRUE(Dominates(n, better.data(), u.data(), sign.data()));
    std::vector<double> worse = x;
    worse[n - 1] -= 1e-9 * sign[n - 1];
    EXPECT_TRUE(Dominates(n, x.data(), worse.data(), sign.data()));
    EXPECT_FALSE(Dominates(n, worse.data(), x.data(), sign.data()));
  }
}

}  // namespace
}  // namespace mergeplan::search
