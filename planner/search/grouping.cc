#include "planner/search/grouping.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <queue>
#include <utility>

#include "planner/search/curvature.h"
#include "planner/search/parallel.h"

namespace mergeplan::search {
namespace {

// Coordinates of one variance.
struct Point {
  double lambda = 0, weight = 0;
  double error = 0;  // tau - V at the plan given
  double tau = 0;
};

// Sums over the points [begin, end) of one cell.
struct Group {
  std::size_t begin = 0, end = 0;
  const Curvature* curvature = nullptr;
  double weight = 0, mean = 0, variance = 0, tau = 0, loss = 0;
};

bool LessLoss(const Group& a, const Group& b) { return a.loss < b.loss; }

Group Summed(const std::vector<Point>& points, std::size_t begin, std::size_t end,
             const Curvature& curvature) {
  Group group{begin, end, &curvature};
  double lambda = 0, tau = 0, error = 0, squares = 0;
  for (std::size_t k = begin; k < end; ++k) {
    const Point& p = points[k];
    group.weight += p.weight;
    lambda += p.weight * p.lambda;
    tau += p.weight * p.tau;
    error += p.weight * p.error;
    squares += p.weight * p.error * p.error;
  }
  group.mean = lambda / group.weight;
  group.tau = tau / group.weight;
  for (std::size_t k = begin; k < end; ++k) {
    const double off = points[k].lambda - group.mean;
    group.variance += points[k].weight * off * off / group.weight;
  }
  if (end - begin == 1) {
    group.mean = points[begin].lambda;
    group.tau = points[begin].tau;
    group.variance = 0;
  }
  // The plan's own curvature is taken to lie in the middle.
  const double shift = 0.25 * group.variance * (curvature.largest - curvature.least);
  const double left = std::max(0.0, std::abs(error) / group.weight - shift);
  group.loss = std::max(0.0, squares - group.weight * left * left);
  return group;
}

// Cells between which no group goes: a fifth of a decade each, finer resolution towards zero makes
// no difference, and cut at 1, where the surrogate changes.
std::vector<std::size_t> CellBorders(const std::vector<Point>& points) {
  const auto cell = [](double lambda) {
    constexpr double kWidth = 0.22, kFloor = 0.01;
    const int step =
        static_cast<int>(std::floor(std::log((lambda + kFloor) / (1 + kFloor)) / kWidth));
    return lambda <= 1 ? std::min(step, -1) : std::max(step, 0);
  };
  std::vector<std::size_t> borders = {0};
  for (std::size_t k = 1; k < points.size(); ++k) {
    if (cell(points[k].lambda) != cell(points[k - 1].lambda)) borders.push_back(k);
  }
  borders.push_back(points.size());
  return borders;
}

}  // namespace

namespace {

// Coordinates of tables that are the same in everything but their weights.
std::vector<Target> DistinctColumns(const Model& model) {
  using Level = absl::Span<const double>;
  std::vector<int> order;
  for (int k = 0; k < model.dimensions(); ++k) {
    if (model.objective_weights()[k] > 0) order.push_back(k);
  }
  const auto compare = [&](int x, int y) {
    if (model.tau()[x] != model.tau()[y]) return model.tau()[x] < model.tau()[y] ? -1 : 1;
    for (int t = 1; t <= model.steps(); ++t) {
      for (const Level& level :
           {model.A(t), model.gamma(t), model.StartSlope(t), model.StartOffset(t)}) {
        if (!level.empty() && level[x] != level[y]) return level[x] < level[y] ? -1 : 1;
      }
    }
    return 0;
  };
  std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return compare(x, y) < 0; });
  std::vector<Target> out;
  for (int k : order) {
    const double weight = model.objective_weights()[k], tau = model.tau()[k];
    if (!out.empty() && compare(out.back().coordinate, k) == 0) {
      out.back().weight += weight;
    } else {
      out.push_back({k, weight, tau, tau, tau});
    }
  }
  return out;
}

}  // namespace

std::vector<Target> DistinctTargets(const Model& model) {
  if (!model.has_schedule()) return DistinctColumns(model);
  std::map<double, Target> targets;
  for (int k = 0; k < model.dimensions(); ++k) {
    const double weight = model.objective_weights()[k];
    if (weight == 0) continue;
    const double tau = model.tau()[k];
    const auto at = targets.try_emplace(model.lambda()[k], Target{k, 0, tau, tau, tau}).first;
    at->second.weight += weight;
  }
  std::vector<Target> out;
  out.reserve(targets.size());
  for (const auto& [lambda, target] : targets) out.push_back(target);
  return out;
}

std::optional<Grouping> MakeGroups(const Model& model, absl::Span<const double> values, Shape shape,
                                   int blocks, double loss, std::size_t most, int threads,
                                   const std::function<bool()>& stop) {
  std::vector<Point> points;
  for (const Target& target : DistinctTargets(model)) {
    points.push_back({model.lambda()[target.coordinate], target.weight,
                      target.tau - values[target.coordinate], target.tau});
  }
  const std::vector<std::size_t> borders = CellBorders(points);
  const std::size_t cells = borders.size() - 1;
  std::vector<Curvature> curvature(cells);
  std::atomic<bool> stopped{false};
  ParallelFor(threads, static_cast<int>(cells), [&](int cell) {
    if (stopped || (stop && stop())) {
      stopped = true;
      return;
    }
    if (borders[cell + 1] - borders[cell] == 1) return;  // one variance: nothing is grouped
    curvature[cell] = BoundCurvature(model, points[borders[cell]].lambda,
                                     points[borders[cell + 1] - 1].lambda, shape, blocks, stop);
  });
  if (stopped || (stop && stop())) return std::nullopt;

  // The group with the largest loss is cut at its mean until little is lost.
  std::priority_queue<Group, std::vector<Group>, decltype(&LessLoss)> queue(&LessLoss);
  double total = 0;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    queue.push(Summed(points, borders[cell], borders[cell + 1], curvature[cell]));
  }
  std::vector<Group> groups;
  while (!queue.empty()) {
    groups.push_back(queue.top());
    total += queue.top().loss;
    queue.pop();
  }
  for (Group& group : groups) queue.push(group);
  while (total > loss && queue.size() < most && queue.top().end - queue.top().begin > 1) {
    const Group group = queue.top();
    queue.pop();
    const auto at = std::partition_point(points.begin() + static_cast<std::ptrdiff_t>(group.begin),
                                         points.begin() + static_cast<std::ptrdiff_t>(group.end),
                                         [&](const Point& p) { return p.lambda <= group.mean; });
    const std::size_t cut =
        std::clamp(static_cast<std::size_t>(at - points.begin()), group.begin + 1, group.end - 1);
    const Group low = Summed(points, group.begin, cut, *group.curvature);
    const Group high = Summed(points, cut, group.end, *group.curvature);
    total += low.loss + high.loss - group.loss;
    queue.push(low);
    queue.push(high);
  }
  groups.clear();
  for (; !queue.empty(); queue.pop()) groups.push_back(queue.top());
  std::sort(groups.begin(), groups.end(),
            [](const Group& a, const Group& b) { return a.begin < b.begin; });

  ModelSpec spec = model.spec();
  const double scale2 = model.schedule().data_scale * model.schedule().data_scale;
  spec.variances.clear();
  spec.weights.clear();
  std::vector<Target> targets;
  // Rounding of the sums over up to d weights.
  const double rounding = (static_cast<double>(points.size()) + 8) * 0x1p-52;
  for (const Group& group : groups) {
    spec.variances.push_back(group.mean * scale2);
    spec.weights.push_back(group.weight / scale2);
    const double half = 0.5 * group.variance * (1 + 1e-9);
    const double tau = group.tau;
    targets.push_back({static_cast<int>(targets.size()), group.weight * (1 - rounding), tau,
                       tau - half * group.curvature->largest - rounding * tau,
                       tau - half * group.curvature->least + rounding * tau});
    if (group.end - group.begin == 1) {
      targets.back() = {targets.back().coordinate, group.weight, tau, tau, tau};
    }
  }
  absl::StatusOr<Model> grouped = Model::Create(std::move(spec));
  if (!grouped.ok()) return std::nullopt;
  return Grouping{*std::move(grouped), std::move(targets), std::max(0.0, total)};
}

}  // namespace mergeplan::search
