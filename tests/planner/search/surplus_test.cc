#include "planner/search/surplus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace mergeplan::search {
namespace {

using Row = std::vector<double>;

double Uniform(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

// Blocks with a few values each, and all plans that can be made of them; no model is behind them,
// so that nothing but the theorem of surplus.h can hold.
struct World {
  int steps = 0, blocks = 0;
  Columns columns;
  std::map<std::pair<int, int>, std::vector<Row>> values;  // of a block
  struct Plan {
    std::vector<int> last;  // of every block
    std::vector<const Row*> values;
    double objective = 0;
  };
  std::vector<Plan> plans;

  std::size_t size() const { return columns.size(); }
  double Error(std::size_t c, double v) const {
    return columns.root_weight[c] * columns.sign[c] * (columns.tau[c] - v);
  }
  double Objective(const Row& v) const {
    double sum = 0;
    for (std::size_t c = 0; c < size(); ++c) {
      const double e = std::max(0.0, Error(c, v[c]));
      sum += e * e;
    }
    return sum;
  }
  void Absorb(Row& best, const Row& v) const {
    if (best.empty()) best = v;
    for (std::size_t c = 0; c < size(); ++c) {
      if (columns.sign[c] * (v[c] - best[c]) > 0) best[c] = v[c];
    }
  }
};

Row Times(const Row& u, const Row& v) {
  Row out(u.size());
  for (std::size_t c = 0; c < u.size(); ++c) out[c] = u[c] * v[c];
  return out;
}

World MakeWorld(std::mt19937_64& random) {
  World world;
  world.steps = std::uniform_int_distribution<int>(3, 6)(random);
  world.blocks = std::uniform_int_distribution<int>(2, std::min(4, world.steps))(random);
  const int n = std::uniform_int_distribution<int>(2, 5)(random);
  const double spread = Uniform(random, 0.005, 0.2);
  for (int c = 0; c < n; ++c) {
    const double sign = random() % 2 == 0 ? 1 : -1;
    world.columns.coordinate.push_back(c);
    world.columns.sign.push_back(sign);
    world.columns.root_weight.push_back(Uniform(random, 0.3, 2));
    world.columns.tau.push_back(1 + sign * Uniform(random, 0.1, 1));
  }
  for (int i = 1; i <= world.steps; ++i) {
    for (int j = i; j <= world.steps; ++j) {
      const int count = std::uniform_int_distribution<int>(1, 3)(random);
      for (int k = 0; k < count; ++k) {
        Row row;
        for (int c = 0; c < n; ++c) row.push_back(1 + Uniform(random, -spread, spread));
        world.values[{i, j}].push_back(std::move(row));
      }
    }
  }
  World::Plan plan;
  const std::function<void(int, const Row&)> extend = [&](int first, const Row& head) {
    const int left = world.blocks - static_cast<int>(plan.last.size());
    if (left == 0) {
      plan.objective = world.Objective(head);
      world.plans.push_back(plan);
      return;
    }
    for (int j = left == 1 ? world.steps : first; j <= world.steps - (left - 1); ++j) {
      for (const Row& row : world.values[{first, j}]) {
        plan.last.push_back(j);
        plan.values.push_back(&row);
        extend(j + 1, Times(head, row));
        plan.last.pop_back();
        plan.values.pop_back();
      }
    }
  };
  extend(1, Row(static_cast<std::size_t>(n), 1.0));
  return world;
}

// Of every plan below the threshold, for each of its blocks: its value between heads and tails at
// their best, and the surplus added, is no more than the objective. Heads are known as well as they
// can be, which is better than as products of best nodes.
TEST(Surplus, AddedToTheBoundOfABlockIsNoMoreThanTheObjective) {
  std::mt19937_64 random(81);
  int checked = 0, counted = 0, better_known = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const World world = MakeWorld(random);
    const int T = world.steps, N = world.blocks;
    const std::size_t n = world.size();
    std::vector<double> sorted;
    for (const World::Plan& plan : world.plans) sorted.push_back(plan.objective);
    std::sort(sorted.begin(), sorted.end());
    const double threshold = sorted[sorted.size() * (trial % 5) / 6] * (1 + 1e-9);

    Bounds bounds;
    bounds.steps = T;
    bounds.blocks = N;
    bounds.columns = world.columns;
    bounds.prefix_a = Rows(static_cast<std::size_t>(N) * T, n, 0);
    bounds.prefix_b = Rows(static_cast<std::size_t>(N) * T, n, 0);
    for (std::size_t c = 0; c < n; ++c) {
      bounds.prefix_a[bounds.root()][c] = world.Error(c, 0);
      bounds.prefix_b[bounds.root()][c] = world.Error(c, 1) - world.Error(c, 0);
    }
    // What the plans below the threshold leave.
    std::map<std::pair<int, int>, Row> node;
    std::map<std::pair<int, int>, std::vector<const Row*>> rows;
    std::map<std::pair<int, int>, Row> known;  // n blocks over 1..j
    std::map<std::pair<int, int>, std::vector<int>> borders;
    for (const World::Plan& plan : world.plans) {
      if (!(plan.objective < threshold)) continue;
      Row head(n, 1.0);
      for (int k = 0; k < N; ++k) {
        const int i = k == 0 ? 1 : plan.last[k - 1] + 1, j = plan.last[k];
        world.Absorb(node[{i, j}], *plan.values[k]);
        rows[{i, j}].push_back(plan.values[k]);
        head = Times(head, *plan.values[k]);
        world.Absorb(known[{k + 1, j}], head);
        if (k > 0) borders[{k + 1, j}].push_back(i - 1);
      }
    }
    for (auto& [key, splits] : borders) {
      std::sort(splits.begin(), splits.end());
      splits.erase(std::unique(splits.begin(), splits.end()), splits.end());
    }
    const auto find = [](const auto& map, int x, int y) -> const double* {
      const auto at = map.find({x, y});
      return at == map.end() ? nullptr : at->second.data();
    };
    Survivors survivors;
    survivors.node = [&](int i, int j) { return find(node, i, j); };
    survivors.prefix = [&](int k, int j) { return find(known, k, j); };
    survivors.borders = [&](int k, int j) {
      const auto at = borders.find({k, j});
      return at == borders.end() ? absl::Span<const int>() : absl::MakeConstSpan(at->second);
    };
    survivors.rows = [&](int i, int j, const std::function<void(const double*)>& look) {
      for (const Row* row : rows[{i, j}]) look(row->data());
    };
    // The last blocks at their best, as products of best nodes.
    std::map<std::pair<int, int>, Row> tail;  // n blocks over i..T
    for (int k = 1; k <= N; ++k) {
      const int block = N - k + 1;
      for (int i = block; i <= T; ++i) {
        for (int j = k == 1 ? T : i; j <= T - (k - 1); ++j) {
          const absl::Span<const int> splits = survivors.borders(block, j);
          if (block > 1 && !std::binary_search(splits.begin(), splits.end(), i - 1)) continue;
          if ((block == 1) != (i == 1) || !node.contains({i, j})) continue;
          if (k > 1 && !tail.contains({k - 1, j + 1})) continue;
          world.Absorb(tail[{k, i}],
                       k == 1 ? node[{i, j}] : Times(node[{i, j}], tail[{k - 1, j + 1}]));
        }
      }
    }
    const std::optional<Surplus> surplus = MakeSurplus(bounds, survivors, threshold, nullptr);
    ASSERT_TRUE(surplus.has_value());
    const Intervals at(T);
    for (const World::Plan& plan : world.plans) {
      if (!(plan.objective < threshold)) continue;
      for (int k = 0; k < N; ++k) {
        const int i = k == 0 ? 1 : plan.last[k - 1] + 1, j = plan.last[k];
        Row whole = *plan.values[k];
        if (k > 0) whole = Times(known[{k, i - 1}], whole);
        if (k + 1 < N) whole = Times(whole, tail[{N - k - 1, j + 1}]);
        const double more = surplus->part[at(i, j)];
        EXPECT_GE(more, 0);
        EXPECT_LE(world.Objective(whole) + more, plan.objective * (1 + 1e-12))
            << "trial " << trial << ", block " << k + 1 << " [" << i << "," << j << "]";
        ++checked;
        counted += more > 1e-3 * plan.objective ? 1 : 0;
        better_known += k > 1 ? 1 : 0;
      }
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(checked, 50'000);
  EXPECT_GT(counted, 5'000);
  EXPECT_GT(better_known, 5'000);
}

}  // namespace
}  // namespace mergeplan::search
