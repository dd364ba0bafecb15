#include "planner/measured/program.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace mergeplan {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// weight * value, where an infinite value (not possible) stays so.
double Times(double weight, double value) { return value < kInfinity ? weight * value : kInfinity; }

// out[k] = min(out[k], least of x[k-n] + weight * y[n] over n = 0..k). `x` and `y` do not rise with
// k, so one that begins with 0 is 0 throughout.
void Convolve(absl::Span<const double> x, double weight, absl::Span<const double> y,
              absl::Span<double> out) {
  const size_t width = out.size();
  if (y[0] == 0) {
    for (size_t k = 0; k < width; ++k) out[k] = std::min(out[k], x[k]);
    return;
  }
  if (x[0] == 0) {
    for (size_t k = 0; k < width; ++k) out[k] = std::min(out[k], Times(weight, y[k]));
    return;
  }
  for (size_t n = 0; n < width; ++n) {
    const double scaled = Times(weight, y[n]);
    if (!(scaled < kInfinity)) continue;
    for (size_t k = n; k < width; ++k) out[k] = std::min(out[k], x[k - n] + scaled);
  }
}

}  // namespace

TreeProgram::TreeProgram(TreeProblem problem) : problem_(std::move(problem)) {
  const int steps = problem_.steps;
  // Limits that cannot be reached are none.
  if (problem_.max_children >= steps) problem_.max_children = 0;
  if (problem_.max_merges >= steps - 1) problem_.max_merges = 0;
  rows_ = problem_.max_merges + 1;
  columns_ = problem_.resource + 1;
  width_ = rows_ * columns_;
  layers_ = problem_.max_children == 0 ? 1 : problem_.max_children - 1;
  values_.assign(static_cast<size_t>(steps) * steps * width_, 0.0);
  std::vector<double> prefix(static_cast<size_t>(layers_) * (steps + 1) * width_);
  std::vector<double> own(static_cast<size_t>(steps) * columns_);
  Row sum(width_);
  for (int i = steps; i >= 1; --i) {
    ExtendPrefix(i, i, prefix, sum);
    for (int j = i + 1; j <= steps; ++j) {
      SolveNode(i, j, prefix, own, sum);
      ExtendPrefix(i, j, prefix, sum);
    }
  }
}

double TreeProgram::Effort(int steps, int max_children, int max_merges, int resource) {
  const auto pairs = [](double n) { return (n + 1) * (n + 2) / 2; };
  const double layers = max_children > 2 && max_children < steps ? max_children - 1 : 1;
  const double triples = static_cast<double>(steps) * steps * steps / 6;
  const double merges = max_merges < steps - 1 ? pairs(max_merges) : 1;
  return triples * pairs(resource) * merges * (1 + layers);
}

void TreeProgram::Join(absl::Span<const double> x, double weight, absl::Span<const double> y,
                       absl::Span<double> out) const {
  // What is 0 with no means at all is 0 throughout.
  if (rows_ == 1 || x[0] == 0 || y[0] == 0) return Convolve(x, weight, y, out);
  const auto columns = static_cast<size_t>(columns_);
  for (int n = 0; n < rows_; ++n) {
    for (int m = 0; n + m < rows_; ++m) {
      Convolve(x.subspan(At(m, 0), columns), weight, y.subspan(At(n, 0), columns),
               out.subspan(At(n + m, 0), columns));
    }
  }
}

bool TreeProgram::Improves(absl::Span<const double> x, double weight, absl::Span<const double> y,
                           double add, Means means, double& best, Means& inside) const {
  bool improved = false;
  for (int m = 0; m <= means.merges; ++m) {
    for (int n = 0; n <= means.resource; ++n) {
      const double value =
          x[At(means.merges - m, means.resource - n)] + Times(weight, y[At(m, n)]) + add;
      if (!(value < best)) continue;
      best = value;
      inside = {m, n};
      improved = true;
    }
  }
  return improved;
}

// E[i,j] from the rows over [i,m], m < j, and the nodes [a,j], a > i.
void TreeProgram::SolveNode(int i, int j, const std::vector<double>& prefix,
                            std::vector<double>& own, Row& sum) {
  const auto size = static_cast<size_t>(j - i) * columns_;
  problem_.own(i, j, absl::MakeSpan(own).first(size));
  const absl::Span<double> out = Cell(i, j);
  if (width_ == 1) {
    const double* rows = &prefix[static_cast<size_t>(layers_ - 1) * (problem_.steps + 1)];
    const double* nodes = &values_[static_cast<size_t>(j - 1) * problem_.steps];
    const double* weights = &problem_.weight[static_cast<size_t>(i - 1) * problem_.steps];
    double best = kInfinity;
    for (int a = j; a > i; --a) {
      const double value = rows[a - 1] + Times(weights[a - 2], nodes[a - 1]) + own[a - i - 1];
      best = std::min(best, value);
    }
    out[0] = best;
    return;
  }
  std::fill(out.begin(), out.end(), kInfinity);
  for (int a = j; a > i; --a) {
    std::fill(sum.begin(), sum.end(), kInfinity);
    Join(Prefix(prefix, layers_ - 1, a - 1), Weight(i, a - 1), Cell(a, j), absl::MakeSpan(sum));
    const auto columns = static_cast<size_t>(columns_);
    const auto cost = absl::MakeConstSpan(own).subspan((a - i - 1) * columns, columns);
    const int itself = problem_.max_merges > 0 ? 1 : 0;  // the merge counts
    for (int n = itself; n < rows_; ++n) {
      Convolve(absl::MakeConstSpan(sum).subspan(At(n - itself, 0), columns), 1, cost,
               out.subspan(At(n, 0), columns));
    }
  }
}

void TreeProgram::ExtendPrefix(int i, int m, std::vector<double>& prefix, Row& sum) const {
  for (int layer = 0; layer < layers_; ++layer) {
    std::copy_n(Cell(i, m).begin(), width_, sum.begin());
    const int below = LayerBelow(layer);
    for (int a = m; a > i && below >= 0; --a) {
      Join(Prefix(prefix, below, a - 1), Weight(i, a - 1), Cell(a, m), absl::MakeSpan(sum));
    }
    std::copy(sum.begin(), sum.end(), Prefix(prefix, layer, m).begin());
  }
}

// The tables hold values only; the plan is found by looking for the candidates that gave them,
// which costs O(T^2) per merge and saves the room of as many tables again.
void TreeProgram::TakeNode(int i, int j, Means means, Found& found) const {
  if (i == j) return;
  std::vector<double> prefix(static_cast<size_t>(layers_) * (problem_.steps + 1) * width_);
  Row sum(width_);
  for (int m = i; m < j; ++m) ExtendPrefix(i, m, prefix, sum);
  std::vector<double> own(static_cast<size_t>(j - i) * columns_);
  problem_.own(i, j, absl::MakeSpan(own));

  if (problem_.max_merges > 0) --means.merges;  // the merge itself
  double best = kInfinity;
  int start = j, share = 0;
  Means inside{0, 0};  // what the noisiest child may use
  for (int a = j; a > i; --a) {
    for (int s = 0; s <= means.resource; ++s) {
      const double cost = own[static_cast<size_t>(a - i - 1) * columns_ + s];
      if (!(cost < best)) continue;
      if (Improves(Prefix(prefix, layers_ - 1, a - 1), Weight(i, a - 1), Cell(a, j), cost,
                   {means.merges, means.resource - s}, best, inside)) {
        start = a;
        share = s;
      }
    }
  }
  std::vector<Range> children;  // from the noisiest
  children.push_back({start, j});
  TakeNode(start, j, inside, found);
  TakePrefix(i, start - 1, layers_ - 1,
             {means.merges - inside.merges, means.resource - share - inside.resource}, prefix,
             found, children);
  std::reverse(children.begin(), children.end());
  found.merges.push_back({{i, j}, std::move(children)});
  found.shares.push_back(share);
}

void TreeProgram::TakePrefix(int i, int m, int layer, Means means,
                             const std::vector<double>& prefix, Found& found,
                             std::vector<Range>& children) const {
  while (m > i) {
    const int below = LayerBelow(layer);
    double best = kInfinity;
    int start = i;
    Means inside = means;  // one child over all of [i,m]
    for (int a = m; a > i && below >= 0; --a) {
      if (Improves(Prefix(prefix, below, a - 1), Weight(i, a - 1), Cell(a, m), 0, means, best,
                   inside)) {
        start = a;
      }
    }
    if (Cell(i, m)[At(means.merges, means.resource)] < best) {
      start = i;
      inside = means;
    }
    children.push_back({start, m});
    TakeNode(start, m, inside, found);
    if (start == i) return;
    m = start - 1;
    means.merges -= inside.merges;
    means.resource -= inside.resource;
    layer = below;
  }
  children.push_back({i, i});
}

TreeAnswer TreeProgram::Best(int blocks) const {
  const int steps = problem_.steps;
  // best[n][m]: n blocks over [1,m].
  std::vector<std::vector<Row>> best(
      blocks + 1, std::vector<Row>(steps + 1, Row(static_cast<size_t>(width_), kInfinity)));
  for (int m = 1; m <= steps; ++m) best[1][m].assign(Cell(1, m).begin(), Cell(1, m).end());
  for (int n = 2; n <= blocks; ++n) {
    for (int m = n; m <= steps; ++m) {
      for (int a = m; a >= n; --a) {
        Join(best[n - 1][a - 1], Weight(1, a - 1), Cell(a, m), absl::MakeSpan(best[n][m]));
      }
    }
  }
  TreeAnswer answer;
  answer.value = best[blocks][steps].back();
  if (!(answer.value < kInfinity)) return answer;

  Found found;
  std::vector<Range> tops;
  int m = steps;
  Means means{rows_ - 1, columns_ - 1};
  for (int n = blocks; n >= 2; --n) {
    double least = kInfinity;
    int start = m;
    Means inside{0, 0};
    for (int a = m; a >= n; --a) {
      if (Improves(best[n - 1][a - 1], Weight(1, a - 1), Cell(a, m), 0, means, least, inside)) {
        start = a;
      }
    }
    tops.push_back({start, m});
    TakeNode(start, m, inside, found);
    m = start - 1;
    means.merges -= inside.merges;
    means.resource -= inside.resource;
  }
  tops.push_back({1, m});
  TakeNode(1, m, means, found);
  std::reverse(tops.begin(), tops.end());

  absl::StatusOr<Plan> plan = Plan::Create(steps, found.merges, tops);
  answer.plan = *std::move(plan);  // a tree by construction
  std::map<std::pair<int, int>, int> share_of;
  for (size_t n = 0; n < found.merges.size(); ++n) {
    share_of[{found.merges[n].range.first, found.merges[n].range.last}] = found.shares[n];
  }
  for (const Merge& merge : answer.plan.merges()) {
    answer.shares.push_back(share_of[{merge.first, merge.last}]);
  }
  return answer;
}

}  // namespace mergeplan
