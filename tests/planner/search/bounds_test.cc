#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "planner/search/bounds.h"
#include "planner/search/frontier.h"
#include "planner/search/kernels.h"
#include "tests/oracle/enumerate.h"
#include "tests/planner/search/problems.h"

namespace mergeplan::search {
namespace {

// For every plan and each of its nodes, in every column: the chord at the node's value is not above
// the plan's signed error, whichever way is better, and no plan's value is beyond the best end.
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
      // Targets far above and below every value make columns of one kind each, the model's own make
      // what the search uses.
      for (double shift : {0.0, 1e6, -1e6}) {
        std::vector<Target> targets;
        for (int k = 0; k < model->dimensions(); ++k) {
          const double tau = model->tau()[k] + shift;
          targets.push_back({k, model->objective_weights()[k], tau, tau, tau});
        }
        const std::optional<Bounds> bounds =
            Bounds::Make(*model, targets, shape, problem.blocks, true, 1, nullptr);
        ASSERT_TRUE(bounds.has_value());
        const Columns& columns = bounds->columns;
        const Shape narrowed = bounds->shape;
        for (const Plan& plan : oracle::AllPlans(
                 T, problem.blocks, shape == Shape::kNary ? Space::kNary : Space::kBinary)) {
          const std::vector<double> carried = model->CarriedNodeValues(plan);
          const std::vector<double> value = model->Value(plan);
          for (std::size_t c = 0; c < columns.size(); ++c) {
            const int k = columns.coordinate[c];
            const Model::Affine map = model->CarriedToValue(1, T);
            const double end = map.offset + map.scale * bounds->best_end[c];
            EXPECT_LE(columns.sign[c] * (value[k] - end), 1e-12 * (1 + value[k]));
          }
          for (int node = 0; node < T + plan.size(); ++node) {
            const Range range = plan.range(node);
            // Single steps inside a merge of all steps have no other value: their bound is never
            // asked for. Where the shape was narrowed to one strategy only blocks have bounds.
            if (range.single()) continue;
            if (OneNodePerInterval(narrowed) &&
                !std::count(plan.blocks().begin(), plan.blocks().end(), node)) {
              continue;
            }
            const std::size_t ij = at(range.first, range.last);
            for (std::size_t c = 0; c < columns.size(); ++c) {
              const int k = columns.coordinate[c];
              const double x = carried[static_cast<std::size_t>(node) * model->dimensions() + k];
              const double error =
                  columns.root_weight[c] * columns.sign[c] * (columns.tau[c] - value[k]);
              EXPECT_LE(bounds->s_a[ij][c] + bounds->s_b[ij][c] * x,
                        error + 1e-12 * (1 + std::abs(columns.tau[c]) + value[k]) *
                                    (1 + columns.root_weight[c]));
            }
          }
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

// After a pass with a threshold: every plan below it has only parts that are left, whose values are
// no better than the best left, and the bounds made anew hold for it.
TEST(Bounds, TightenedHoldBelowTheThreshold) {
  std::mt19937_64 random(13);
  int plans = 0;
  for (int trial = 0; trial < 150; ++trial) {
    const RandomProblem problem = MakeRandomProblem(random, {3, 6, 3, 3});
    SCOPED_TRACE(problem.text);
    absl::StatusOr<Model> model = Model::Create(problem.model);
    if (!model.ok()) continue;
    const int T = model->steps();
    const Intervals at(T);
    const Shape shape = trial % 2 == 0 ? Shape::kNary : Shape::kBinary;
    std::vector<Target> targets;
    for (int k = 0; k < model->dimensions(); ++k) {
      const double tau = model->tau()[k];
      targets.push_back({k, model->objective_weights()[k], tau, tau, tau});
    }
    std::optional<Bounds> bounds =
        Bounds::Make(*model, targets, shape, problem.blocks, true, 1, nullptr);
    ASSERT_TRUE(bounds.has_value());
    if (OneNodePerInterval(bounds->shape)) continue;
    const std::vector<Plan>& all =
        oracle::AllPlans(T, problem.blocks, shape == Shape::kNary ? Space::kNary : Space::kBinary);
    std::vector<double> objectives;
    double tolerance = 0;
    for (const Plan& plan : all) {
      objectives.push_back(model->Objective(plan));
      tolerance =
          std::max(tolerance, model->Tolerance(model->Value(plan), problem.model.reference));
    }
    std::vector<double> sorted = objectives;
    std::sort(sorted.begin(), sorted.end());
    const double threshold = sorted[sorted.size() / 3] * (1 + 1e-9);
    for (int round = 0; round < 2; ++round) {
      PassOptions options;
      options.threshold = threshold;
      options.slack = round == 0 ? 0.1 * threshold : 0;
      options.trace = trial % 3 > 0;
      Pass pass(*model, *bounds, options);
      ASSERT_EQ(pass.Run(), Pass::Outcome::kDone);
      EXPECT_LE(pass.LowerBound(), sorted[0] + tolerance);
      ASSERT_TRUE(bounds->Tighten(*model, pass.Left(), threshold, 1, nullptr));
    }
    for (std::size_t p = 0; p < all.size(); ++p) {
      if (!(objectives[p] < threshold * (1 - 1e-6))) continue;
      ++plans;
      const std::vector<double> carried = model->CarriedNodeValues(all[p]);
      const std::vector<double> value = model->Value(all[p]);
      for (int node = 0; node < T + all[p].size(); ++node) {
        const Range range = all[p].range(node);
        if (range.single()) continue;
        for (std::size_t c = 0; c < bounds->columns.size(); ++c) {
          const int k = bounds->columns.coordinate[c];
          const double x = carried[static_cast<std::size_t>(node) * model->dimensions() + k];
          const double error = bounds->columns.root_weight[c] * bounds->columns.sign[c] *
                               (bounds->columns.tau[c] - value[k]);
          const std::size_t ij = at(range.first, range.last);
          EXPECT_LE(bounds->s_a[ij][c] + bounds->s_b[ij][c] * x,
                    error + 1e-12 * (1 + std::abs(bounds->columns.tau[c]) + value[k]) *
                                (1 + bounds->columns.root_weight[c]));
        }
      }
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(plans, 500);
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
    std::vector<double> squares(n), less(n);
    EXPECT_EQ(RowSquares(n, x.data(), a.data(), b.data(), squares.data()),
              RowBound(n, x.data(), a.data(), b.data()));
    double loss = 0;
    for (std::size_t c = 0; c < n; ++c) {
      const double e = std::max(0.0, a[c] + b[c] * x[c]);
      EXPECT_DOUBLE_EQ(squares[c], e * e);
      loss += std::max(0.0, squares[c] - u[c]);
    }
    EXPECT_NEAR(SquaresLoss(n, squares.data(), u.data(), 1e300), loss, 1e-12 * loss);
    if (loss > 0) {
      EXPECT_GT(SquaresLoss(n, squares.data(), u.data(), loss / 2), loss / 2);
    }
    less = squares;
    Lessen(n, less.data(), u.data());
    for (std::size_t c = 0; c < n; ++c) EXPECT_EQ(less[c], std::min(squares[c], u[c]));
    EXPECT_TRUE(Dominates(n, x.data(), x.data(), sign.data()));
    std::vector<double> better = x;
    Absorb(n, better.data(), u.data(), sign.data());
    EXPECT_TRUE(Dominates(n, better.data(), x.data(), sign.data()));
    EXPECT_TRUE(Dominates(n, better.data(), u.data(), sign.data()));
    std::vector<double> worst = a;
    KeepWorse(n, rule, u.data(), v.data(), sign.data(), worst.data());
    std::vector<double> errors[4] = {x, x, x, x};  // of u at its best and worst, and of v
    std::vector<double> left(n), right(n), line = x;
    CandidateValue(n, rule, b.data(), v.data(), left.data());
    CandidateValue(n, rule, u.data(), b.data(), right.data());
    LessenThrough(n, rule, {u.data(), b.data(), errors[0].data(), errors[1].data()},
                  {v.data(), b.data(), errors[2].data(), errors[3].data()}, a.data(), b.data());
    LessenOnLine(n, x.data(), a.data(), b.data(), line.data());
    for (std::size_t c = 0; c < n; ++c) {
      EXPECT_EQ(worst[c], sign[c] > 0 ? std::min(a[c], x[c]) : std::max(a[c], x[c]));
      EXPECT_EQ(line[c], std::min(x[c], a[c] + b[c] * x[c]));
      EXPECT_EQ(errors[0][c], line[c]);
      EXPECT_EQ(errors[1][c], std::min(x[c], a[c] + b[c] * left[c]));
      EXPECT_EQ(errors[2][c], line[c]);
      EXPECT_EQ(errors[3][c], std::min(x[c], a[c] + b[c] * right[c]));
    }
    std::vector<double> worse = x;
    worse[n - 1] -= 1e-9 * sign[n - 1];
    EXPECT_TRUE(Dominates(n, x.data(), worse.data(), sign.data()));
    EXPECT_FALSE(Dominates(n, worse.data(), x.data(), sign.data()));
  }
}

}  // namespace
}  // namespace mergeplan::search
