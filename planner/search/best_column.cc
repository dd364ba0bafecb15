#include "planner/search/best_column.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "planner/operators/canonical.h"
#include "planner/search/planes.h"

namespace mergeplan::search {
namespace {

// Finds the parts that the values of a finished table are made of.
class Builder {
 public:
  Builder(const ColumnProblem& column, Shape shape, bool largest, const Plane& all_steps,
          const InsideEnd& end)
      : column_(column),
        shape_(shape),
        largest_(largest),
        all_steps_(all_steps),
        end_(end),
        plan_(column.steps) {}

  std::optional<Plan> Whole(int blocks) {
    std::vector<Range> ranges(blocks);
    int last = column_.steps;
    for (int count = blocks; count > 1; --count) {
      int best = count - 1;
      for (int m = count; m < last; ++m) {
        if (Better(Prefix(count, m, last), Prefix(count, best, last))) best = m;
      }
      ranges[count - 1] = Node(best + 1, last);
      last = best;
    }
    ranges[0] = Node(1, last);
    absl::StatusOr<Plan> plan = plan_.Finish(ranges);
    if (!plan.ok()) return std::nullopt;
    return *std::move(plan);
  }

 private:
  bool Better(double x, double y) const { return largest_ ? x > y : x < y; }

  double Prefix(int count, int m, int last) const {
    return ProductValue(column_, 1, m, end_.prefix[count - 1][m], end_.s_last[last][m + 1]);
  }

  Range Node(int i, int j) {
    if (i == j) return PlanBuilder::Step(j);
    const auto merge = [&](int m) {
      return MergeValue(column_, i, m, j, end_.q_first[i][m], end_.s_last[j][m + 1]);
    };
    int best = i;
    for (int m = i + 1; m < j; ++m) {
      if (Better(merge(m), merge(best))) best = m;
    }
    std::vector<Range> children;
    if (shape_ == Shape::kBinary &&
        !Better(merge(best),
                MergeValue(column_, i, j - 1, j, all_steps_[i][j - 1], column_.leaf[j]))) {
      for (int t = i; t <= j; ++t) children.push_back(PlanBuilder::Step(t));
    } else {
      Product(i, best, children);
      children.push_back(Node(best + 1, j));
    }
    return plan_.Merge(std::move(children));
  }

  // One or more neighbouring nodes over [i,j].
  void Product(int i, int j, std::vector<Range>& children) {
    if (shape_ == Shape::kNary) {
      int best = j;  // j: one node
      double value = end_.s_first[i][j];
      for (int m = i; m < j; ++m) {
        const double product =
            ProductValue(column_, i, m, end_.q_first[i][m], end_.s_last[j][m + 1]);
        if (!Better(product, value)) continue;
        value = product;
        best = m;
      }
      if (best < j) {
        Product(i, best, children);
        children.push_back(Node(best + 1, j));
        return;
      }
    }
    children.push_back(Node(i, j));
  }

  const ColumnProblem& column_;
  const Shape shape_;
  const bool largest_;
  const Plane& all_steps_;
  const InsideEnd& end_;
  PlanBuilder plan_;
};

}  // namespace

std::optional<Plan> BestPlanOfColumn(const Model& model, const Target& target, Shape shape,
                                     int blocks, int threads, const std::function<bool()>& stop) {
  std::optional<JumpForm> jump;
  if (model.carries_x0()) jump.emplace(model.schedule());
  const int T = model.steps();
  const ColumnProblem column(model, target.coordinate, jump ? &*jump : nullptr);
  const Model::Affine map = model.CarriedToValue(1, T);
  const double scale = map.scale / (jump ? jump->d_first[1][T] : 1.0);
  Plane all_steps;
  if (shape != Shape::kNary) {
    all_steps = Plane(T);
    MultiplySteps(column, all_steps);
  }
  // The side on which one plan lies is the only one on which all can be: tried first.
  const absl::StatusOr<Plan> sample = CanonicalPlan(Strategy::kVanilla, T, blocks);
  if (!sample.ok()) return std::nullopt;
  const bool below = model.Value(*sample)[target.coordinate] <= target.tau;
  InsideEnd end(T, blocks);
  for (const bool largest : {below, !below}) {
    if (!end.Run(column, shape, largest, all_steps, threads, stop)) return std::nullopt;
    const double best = map.offset + scale * end.prefix[blocks][T];
    const double rounding = model.Rounding(target.coordinate, best, target.tau);
    if (largest ? best <= target.tau + rounding : best >= target.tau - rounding) {
      return Builder(column, shape, largest, all_steps, end).Whole(blocks);
    }
  }
  return std::nullopt;
}

}  // namespace mergeplan::search
