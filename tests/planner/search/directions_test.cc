#include "planner/search/directions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "planner/search/two_columns.h"
#include "tests/oracle/enumerate.h"
#include "tests/planner/search/problems.h"

namespace mergeplan::search {
namespace {

// The value of the whole plan in one dimension, by the recursion as the paper has it, with that of
// one node taken `times` as large; values[node] of all nodes.
double Whole(const Model& model, const Plan& plan, int k, int at, double times,
             std::vector<double>* values) {
  const int T = model.steps();
  std::vector<double>& v = *values;
  v.assign(static_cast<std::size_t>(T + plan.size()), 0);
  for (int t = 1; t <= T; ++t) v[t - 1] = model.A(t)[k] * (at == t - 1 ? times : 1);
  for (int m = 0; m < plan.size(); ++m) {
    const Merge& merge = plan.merges()[m];
    double product = 1;
    for (int child : merge.children) product *= v[child];
    v[T + m] = model.one_minus_gamma(merge.last)[k] * product +
               model.gamma(merge.last)[k] * v[merge.children.back()];
    if (at == T + m) v[T + m] *= times;
  }
  double whole = 1;
  for (int block : plan.blocks()) whole *= v[block];
  return whole;
}

// Of every node and every product of cleaner children in every plan below the threshold: how the
// plan trades the two values is within the range, whatever else was known of the values.
TEST(Directions, HoldForEveryPartOfEveryPlan) {
  std::mt19937_64 random(61);
  int looked = 0, parts = 0, narrow = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    RandomProblem problem = MakeRandomProblem(random, {2, 6, 2, 3});
    problem.model.init = Init::kChild;
    SCOPED_TRACE(problem.text);
    const absl::StatusOr<Model> model = Model::Create(problem.model);
    if (!model.ok() || model->dimensions() != 2) continue;
    const double shift = trial % 3 == 0 ? 0.0 : trial % 3 == 1 ? 3.0 : -3.0;
    std::vector<Target> targets;
    for (int k = 0; k < 2; ++k) {
      const double tau = model->tau()[k] + shift;
      targets.push_back({k, model->objective_weights()[k], tau, tau, tau});
    }
    const std::optional<Bounds> bounds =
        Bounds::Make(*model, targets, Shape::kNary, problem.blocks, true, 1, nullptr);
    ASSERT_TRUE(bounds.has_value());
    if (!TwoColumns::Applies(*model, *bounds)) continue;
    ++looked;
    const Columns& columns = bounds->columns;
    const std::vector<Plan>& plans = oracle::AllPlans(model->steps(), problem.blocks, Space::kNary);
    const auto error = [&](const std::array<double, 2>& value, int c) {
      return columns.root_weight[c] * columns.sign[c] * (columns.tau[c] - value[c]);
    };
    std::array<double, 2> tangent;
    for (double& t : tangent) t = trial % 7 == 0 ? 0.0 : Uniform(random, 0, 1);
    const double threshold =
        trial % 4 == 0 ? std::numeric_limits<double>::infinity() : Uniform(random, -0.2, 0.5);
    Directions directions(*bounds);
    directions.Set(tangent, threshold);
    std::vector<double> values[2], changed;
    for (const Plan& plan : plans) {
      std::array<double, 2> whole;
      double l = 0;
      for (int c = 0; c < 2; ++c) {
        whole[c] = Whole(*model, plan, columns.coordinate[c], -1, 1, &values[c]);
        l += tangent[c] * (2 * error(whole, c) - tangent[c]);
      }
      if (!(l < threshold)) continue;
      // How much l falls where the node's value doubles, by column.
      std::vector<std::array<double, 2>> falls(values[0].size());
      for (std::size_t node = 0; node < falls.size(); ++node) {
        for (int c = 0; c < 2; ++c) {
          const double grown =
              Whole(*model, plan, columns.coordinate[c], static_cast<int>(node), 2, &changed);
          falls[node][c] = tangent[c] * columns.root_weight[c] * (grown - whole[c]);
        }
      }
      const auto check = [&](int j, const std::array<double, 2>& value,
                             const std::array<double, 2>& fall) {
        const std::array<double, 2> slope = {fall[0] / value[0], fall[1] / value[1]};
        if (!(slope[0] > 1e-6 && slope[1] > 1e-6)) return;  // too little to be told from rounding
        ++parts;
        for (const double around : {0.0, 0.3}) {
          const std::array<double, 2> least = {value[0] * (1 - around), value[1] * (1 - around)};
          const std::array<double, 2> most = {value[0] * (1 + around), value[1] * (1 + around)};
          const Directions::Range range = directions.Of(j, least, most);
          EXPECT_LE(range.least * slope[0], slope[1] * (1 + 1e-8)) << plan.ToString();
          EXPECT_GE(range.most * slope[0], slope[1] * (1 - 1e-8)) << plan.ToString();
          narrow += range.most < 3 * range.least ? 1 : 0;
        }
      };
      for (std::size_t node = 0; node < falls.size(); ++node) {
        check(plan.range(static_cast<int>(node)).last, {values[0][node], values[1][node]},
              falls[node]);
      }
      for (const Merge& merge : plan.merges()) {
        std::array<double, 2> product = {1, 1};
        for (std::size_t child = 0; child + 1 < merge.children.size(); ++child) {
          const int node = merge.children[child];
          for (int c = 0; c < 2; ++c) product[c] *= values[c][node];
          check(plan.range(node).last, product, falls[node]);
        }
      }
      std::array<double, 2> prefix = {1, 1};
      for (int block : plan.blocks()) {
        for (int c = 0; c < 2; ++c) prefix[c] *= values[c][block];
        check(model->steps(), prefix, falls[block]);
      }
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(looked, 300);
  EXPECT_GT(parts, 100'000);
  EXPECT_GT(narrow, parts / 10);
}

}  // namespace
}  // namespace mergeplan::search
