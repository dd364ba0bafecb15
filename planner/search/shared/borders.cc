#include "planner/search/shared/borders.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "planner/search/parallel.h"

namespace mergeplan::search {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// last[b] is the last step of block b; the last of them is T.
Plan VanillaBlocks(int steps, const std::vector<int>& last) {
  PlanBuilder builder(steps);
  std::vector<Range> blocks;
  int first = 1;
  for (int end : last) {
    std::vector<Range> children;
    for (int t = first; t <= end; ++t) children.push_back(PlanBuilder::Step(t));
    blocks.push_back(children.size() == 1 ? children[0] : builder.Merge(std::move(children)));
    first = end + 1;
  }
  return *builder.Finish(blocks);
}

// The next set of borders in lexicographic order; false after the last.
bool Next(int steps, std::vector<int>& last) {
  const int N = static_cast<int>(last.size());
  for (int b = N - 2; b >= 0; --b) {
    if (last[b] + 1 >= steps - (N - 2 - b)) continue;
    ++last[b];
    for (int c = b + 1; c < N - 1; ++c) last[c] = last[c - 1] + 1;
    return true;
  }
  return false;
}

// The parts of the objective, by column, if every block had the whole total: no allocation is
// better in any column.
std::vector<double> WithAllInEach(SharedTree& tree, const VanillaSides& sides) {
  const SharedProblem& problem = tree.problem();
  std::vector<double> out =
      tree.Value(std::vector<double>(static_cast<std::size_t>(tree.merges()), 1.0));
  for (std::size_t k = 0; k < out.size(); ++k) {
    const double off = std::max(0.0, sides.side[k] * (problem.tau[k] - out[k]));
    out[k] = problem.weight[k] * off * off;
  }
  return out;
}

double Sum(const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0); }

}  // namespace

double VanillaLowerBound(SharedTree& tree, const Allocation& at, const VanillaSides& sides) {
  const SharedProblem& problem = tree.problem();
  const std::vector<double> value = tree.Value(at.shares);
  const std::vector<double> untrained =
      tree.Value(std::vector<double>(static_cast<std::size_t>(tree.merges()), 0.0));
  const std::vector<double> least = WithAllInEach(tree, sides);
  const double sum = Sum(least);
  double outside = kInfinity;
  bool inside = true;
  for (std::size_t k = 0; k < value.size(); ++k) {
    const double half = problem.tau[k] / 2;
    if (sides.side[k] <= 0 || problem.weight[k] <= 0 || untrained[k] >= half) continue;
    const double off = problem.tau[k] - value[k], most = problem.tau[k] - untrained[k];
    if (value[k] >= half && off >= 0 &&
        off * off + 2 * off * value[k] * std::log(value[k] / untrained[k]) <= most * most) {
      continue;  // the tangent holds everywhere
    }
    outside =
        std::min(outside, sum - least[k] + std::max(least[k], problem.weight[k] * half * half));
    inside = inside && value[k] >= half;
  }
  const double bound = inside ? std::min(at.objective - at.stationarity, outside) : 0.0;
  return std::max({0.0, bound, sum});
}

double CountBorders(int steps, int blocks, double most) {
  double count = 1;
  for (int b = 1; b < blocks; ++b) {
    count *= static_cast<double>(steps - b) / b;
    if (count > most && 2 * b <= steps) return most + 1;
  }
  return count;
}

std::vector<Plan> VanillaBlockPlans(int steps, int blocks, int most) {
  // Beyond so many sets of borders they are not even counted through.
  constexpr double kMost = 1e6;
  const double count = CountBorders(steps, blocks, kMost);
  if (count > kMost) return {};
  const int stride = static_cast<int>(count / most) + 1;
  std::vector<int> last(blocks);
  std::iota(last.begin(), last.end(), 1);
  last.back() = steps;
  std::vector<Plan> out;
  int n = 0;
  do {
    if (n++ % stride == 0) out.push_back(VanillaBlocks(steps, last));
  } while (Next(steps, last));
  return out;
}

BordersResult BestBorders(const SharedProblem& problem, int blocks, const VanillaSides& sides,
                          double incumbent, double floor, int threads,
                          const std::function<bool()>& stop) {
  constexpr int kChunk = 64, kEvaluations = 60;
  const int T = problem.steps();
  BordersResult out;
  out.lower_bound = kInfinity;
  std::vector<int> last(blocks);
  std::iota(last.begin(), last.end(), 1);
  last.back() = T;
  double best = incumbent;
  struct Tried {
    Allocation allocation;
    double bound = 0;
    bool done = false;
  };
  for (bool more = true; more;) {
    std::vector<std::vector<int>> chunk;
    for (; more && chunk.size() < kChunk; more = Next(T, last)) chunk.push_back(last);
    out.borders += static_cast<int>(chunk.size());
    std::vector<Tried> tried(chunk.size());
    ParallelFor(threads, static_cast<int>(chunk.size()), [&](int c) {
      if (stop && stop()) return;
      SharedTree tree(problem, VanillaBlocks(T, chunk[c]));
      Tried& t = tried[c];
      t.done = true;
      t.bound = Sum(WithAllInEach(tree, sides));
      t.allocation.objective = kInfinity;
      if (t.bound >= best) return;
      // Convex: one start is enough, with more patience where it did not come to its end.
      const int M = tree.merges();
      std::vector<double> equal(static_cast<std::size_t>(M), M > 0 ? 1.0 / M : 0.0);
      t.allocation = Descend(tree, std::move(equal), kEvaluations, 1e-9, floor, stop);
      if (t.allocation.stationarity > 1e-7 * t.allocation.objective) {
        t.allocation =
            Descend(tree, std::move(t.allocation.shares), 10 * kEvaluations, 1e-9, floor, stop);
      }
      t.bound = VanillaLowerBound(tree, t.allocation, sides);
    });
    for (std::size_t c = 0; c < chunk.size(); ++c) {
      if (!tried[c].done) return out;
      out.lower_bound = std::min(out.lower_bound, tried[c].bound);
      if (!(tried[c].allocation.objective < best)) continue;
      best = tried[c].allocation.objective;
      out.allocation = std::move(tried[c].allocation);
      out.plan = VanillaBlocks(T, chunk[c]);
    }
  }
  out.lower_bound = std::min(out.lower_bound, best);
  out.complete = true;
  return out;
}

}  // namespace mergeplan::search
