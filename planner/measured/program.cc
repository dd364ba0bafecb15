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

TreeProgram::TreeProgram(TreeProblem problem)
    : problem_(std::move(problem)), width_(problem_.resource + 1) {
  const int steps = problem_.steps;
  // A limit that no merge can reach is none.
  if (problem_.max_children >= steps) problem_.max_children = 0;
  layers_ = problem_.max_children == 0 ? 1 : problem_.max_children - 1;
  values_.assign(static_cast<size_t>(steps) * steps * width_, 0.0);
  std::vector<double> prefix(static_cast<size_t>(layers_) * (steps + 1) * width_);
  std::vector<double> own(static_cast<size_t>(steps) * width_);
  Row sum(width_);
  for (int i = steps; i >= 1; --i) {
    ExtendPrefix(i, i, prefix, sum);
    for (int j = i + 1; j <= steps; ++j) {
      SolveNode(i, j, prefix, own, sum);
      ExtendPrefix(i, j, prefix, sum);
    }
  }
}

double TreeProgram::Effort(int steps, int max_children, int resource) {
  const double layers = max_children > 2 && max_children < steps ? max_children - 1 : 1;
  const double triples = static_cast<double>(steps) * steps * steps / 6;
  const double pairs = (resource + 1.0) * (resource + 2.0) / 2;
  return triples * pairs * (1 + layers);
}

// E[i,j] from the rows over [i,m], m < j, and the nodes [a,j], a > i.
void TreeProgram::SolveNode(int i, int j, const std::vector<double>& prefix,
                            std::vector<double>& own, Row& sum) {
  const auto size = static_cast<size_t>(j - i) * width_;
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
    Convolve(Prefix(prefix, layers_ - 1, a - 1), Weight(i, a - 1), Cell(a, j), absl::MakeSpan(sum));
    Convolve(sum, 1,
             absl::MakeConstSpan(own).subspan(static_cast<size_t>(a - i - 1) * width_, width_),
             out);
  }
}

void TreeProgram::ExtendPrefix(int i, int m, std::vector<double>& prefix, Row& sum) const {
  for (int layer = 0; layer < layers_; ++layer) {
    std::copy_n(Cell(i, m).begin(), width_, sum.begin());
    const int below = LayerBelow(layer);
    for (int a = m; a > i && below >= 0; --a) {
      Convolve(Prefix(prefix, below, a - 1), Weight(i, a - 1), Cell(a, m), absl::MakeSpan(sum));
    }
    std::copy(sum.begin(), sum.end(), Prefix(prefix, layer, m).begin());
  }
}

// The tables hold values only; the plan is found by looking for the candidates that gave them,
// which costs O(T^2) per merge and saves the room of as many tables again.
void TreeProgram::TakeNode(int i, int j, int k, Found& found) const {
  if (i == j) return;
  std::vector<double> prefix(static_cast<size_t>(layers_) * (problem_.steps + 1) * width_);
  Row sum(width_);
  for (int m = i; m < j; ++m) ExtendPrefix(i, m, prefix, sum);
  std::vector<double> own(static_cast<size_t>(j - i) * width_);
  problem_.own(i, j, absl::MakeSpan(own));

  double best = kInfinity;
  int start = j, share = 0, inside = 0;  // `inside`: what the noisiest child may use
  for (int a = j; a > i; --a) {
    const absl::Span<const double> rows = Prefix(prefix, layers_ - 1, a - 1);
    const absl::Span<const double> node = Cell(a, j);
    for (int s = 0; s <= k; ++s) {
      const double cost = own[static_cast<size_t>(a - i - 1) * width_ + s];
      if (!(cost < best)) continue;
      for (int n = 0; n + s <= k; ++n) {
        const double value = rows[k - s - n] + Times(Weight(i, a - 1), node[n]) + cost;
        if (value < best) {
          best = value;
          start = a;
          share = s;
          inside = n;
        }
      }
    }
  }
  std::vector<Range> children;  // from the noisiest
  children.push_back({start, j});
  TakeNode(start, j, inside, found);
  TakePrefix(i, start - 1, layers_ - 1, k - share - inside, prefix, found, children);
  std::reverse(children.begin(), children.end());
  found.merges.push_back({{i, j}, std::move(children)});
  found.shares.push_back(share);
}

void TreeProgram::TakePrefix(int i, int m, int layer, int k, const std::vector<double>& prefix,
                             Found& found, std::vector<Range>& children) const {
  while (m > i) {
    const int below = LayerBelow(layer);
    double best = kInfinity;
    int start = i, inside = k;  // one child over all of [i,m]
    for (int a = m; a > i && below >= 0; --a) {
      for (int n = 0; n <= k; ++n) {
        const double value =
            Prefix(prefix, below, a - 1)[k - n] + Times(Weight(i, a - 1), Cell(a, m)[n]);
        if (value < best) {
          best = value;
          start = a;
          inside = n;
        }
      }
    }
    if (Cell(i, m)[k] < best) {
      start = i;
      inside = k;
    }
    children.push_back({start, m});
    TakeNode(start, m, inside, found);
    if (start == i) return;
    m = start - 1;
    k -= inside;
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
        Convolve(best[n - 1][a - 1], Weight(1, a - 1), Cell(a, m), absl::MakeSpan(best[n][m]));
      }
    }
  }
  TreeAnswer answer;
  answer.value = best[blocks][steps][width_ - 1];
  if (!(answer.value < kInfinity)) return answer;

  Found found;
  std::vector<Range> tops;
  int m = steps, k = width_ - 1;
  for (int n = blocks; n >= 2; --n) {
    double least = kInfinity;
    int start = m, inside = 0;
    for (int a = m; a >= n; --a) {
      for (int s = 0; s <= k; ++s) {
        const double value = best[n - 1][a - 1][k - s] + Times(Weight(1, a - 1), Cell(a, m)[s]);
        if (value < least) {
          least = value;
          start = a;
          inside = s;
        }
      }
    }
    tops.push_back({start, m});
    TakeNode(start, m, inside, found);
    m = start - 1;
    k -= inside;
  }
  tops.push_back({1, m});
  TakeNode(1, m, k, found);
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
