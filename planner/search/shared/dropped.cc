#include "planner/search/shared/dropped.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <queue>
#include <utility>

namespace mergeplan::search {
namespace {

// The coordinates that are looked at together.
struct Together {
  std::vector<std::size_t> column;   // of the problem
  std::vector<unsigned char> lower;  // lambda <= border
  // offset + end * (product of factors) is a vector F: G A_T and (1 - G) A_T.
  std::vector<double> weight, tau, low, high, offset, end;
  std::vector<double> log_a;  // (T-1) x columns
  // Is the penalty flat beyond the ends? Better, but with a kink where descent may get stuck.
  bool flat = true;
  std::size_t width() const { return column.size(); }
};

struct Penalty {
  double value = 0;
  std::vector<double> slope;
};

// sum of psi and a subgradient: the weighted square, flat beyond the end that tau lies beyond.
Penalty PenaltyAt(const Together& t, const std::vector<double>& x) {
  Penalty out{0, std::vector<double>(t.width())};
  for (std::size_t k = 0; k < t.width(); ++k) {
    double v = x[k];
    bool flat = false;
    if (!t.flat) {
      // A square everywhere.
    } else if (t.tau[k] >= t.high[k] && v >= t.high[k]) {
      v = t.high[k], flat = true;
    } else if (t.tau[k] <= t.low[k] && v <= t.low[k]) {
      v = t.low[k], flat = true;
    }
    const double error = v - t.tau[k];
    out.value += t.weight[k] * error * error;
    out.slope[k] = flat ? 0.0 : 2 * t.weight[k] * error;
  }
  return out;
}

// min over the vectors F of slope·F.
class LinearMinimum {
 public:
  LinearMinimum(const Together& t, int choices, const std::vector<double>& slope)
      : t_(t), choices_(choices), slope_(slope), width_(t.width()) {
    // The logarithm of the factor of step s in column k: drop (the lower ones have 1) and keep (the
    // upper ones have A).
    drop_.resize(t.log_a.size());
    keep_.resize(t.log_a.size());
    for (std::size_t at = 0; at < drop_.size(); ++at) {
      const std::size_t k = at % width_;
      const double a = t.log_a[at];
      const double free = slope[k] > 0 ? std::min(0.0, a) : slope[k] < 0 ? std::max(0.0, a) : 0.0;
      drop_[at] = t.lower[k] ? 0.0 : free;
      keep_[at] = t.lower[k] ? free : a;
    }
  }

  struct Result {
    double bound = 0;            // of the minimum
    double value = 0;            // slope·F of the best F seen
    std::vector<double> vector;  // that F
  };

  Result Run(int nodes, double relative, const std::function<bool()>& stop) {
    best_ = 1e300;
    std::priority_queue<Node, std::vector<Node>, Later> open;
    open.push(Bounded(Node{std::vector<signed char>(choices_, 0)}));
    double closed = 1e300;  // least bound of the branches that were dropped for their bound
    for (int n = 0; n < nodes && !open.empty() && !(stop && stop()); ++n) {
      Node node = open.top();
      const double gap = best_ - node.bound;
      if (gap <= relative || node.branch < 0) break;
      open.pop();
      for (signed char choice : {1, -1}) {
        Node child = node;
        child.choice[node.branch] = choice;
        child = Bounded(std::move(child));
        if (child.bound >= best_) {
          closed = std::min(closed, child.bound);
        } else {
          open.push(std::move(child));
        }
      }
    }
    Result out;
    out.bound = std::min(best_, closed);
    if (!open.empty()) out.bound = std::min(out.bound, open.top().bound);
    out.value = best_;
    out.vector = std::move(best_vector_);
    return out;
  }

 private:
  struct Node {
    std::vector<signed char> choice;  // +1: drop, -1: keep, 0: open
    double bound = 0;
    int branch = -1;  // the open step to decide next; -1: none
  };
  struct Later {
    bool operator()(const Node& a, const Node& b) const { return a.bound > b.bound; }
  };

  Node Bounded(Node node) {
    std::vector<double> low(width_, 0.0), high(width_, 0.0), chosen(width_, 0.0);
    for (int s = 0; s < choices_; ++s) {
      const double* drop = &drop_[s * width_];
      const double* keep = &keep_[s * width_];
      for (std::size_t k = 0; k < width_; ++k) {
        const double least = node.choice[s] > 0 ? drop[k] : keep[k];
        const double most = node.choice[s] < 0 ? keep[k] : drop[k];
        low[k] += std::min(least, most);
        high[k] += std::max(least, most);
      }
    }
    std::vector<double> tangent(width_);
    for (std::size_t k = 0; k < width_; ++k) tangent[k] = (low[k] + high[k]) / 2;
    node.bound = -1e300;
    // The second tangent touches where the first one's minimum was.
    for (int round = 0; round < 2; ++round) {
      std::vector<double> line(width_);
      double constant = 0;
      for (std::size_t k = 0; k < width_; ++k) {
        const double c = slope_[k] * t_.end[k];
        if (c >= 0) {
          line[k] = c * std::exp(tangent[k]);
          constant += line[k] * (1 - tangent[k]);
        } else {
          const double range = high[k] - low[k];
          const double from = std::exp(low[k]);
          line[k] = c * from * (range > 1e-9 ? std::expm1(range) / range : std::exp(range));
          constant += c * from - line[k] * low[k];
        }
        constant += slope_[k] * t_.offset[k];
      }
      std::fill(chosen.begin(), chosen.end(), 0.0);
      double sum = constant;
      std::vector<signed char> pick = node.choice;
      double widest = -1;
      int branch = -1;
      for (int s = 0; s < choices_; ++s) {
        const double* drop = &drop_[s * width_];
        const double* keep = &keep_[s * width_];
        double by_drop = 0, by_keep = 0, spread = 0;
        for (std::size_t k = 0; k < width_; ++k) {
          by_drop += line[k] * drop[k];
          by_keep += line[k] * keep[k];
          spread += std::abs(line[k] * (drop[k] - keep[k]));
        }
        if (node.choice[s] == 0) {
          pick[s] = by_drop < by_keep ? 1 : -1;
          if (spread > widest) widest = spread, branch = s;
        }
        sum += pick[s] > 0 ? by_drop : by_keep;
        const double* taken = pick[s] > 0 ? drop : keep;
        for (std::size_t k = 0; k < width_; ++k) chosen[k] += taken[k];
      }
      node.branch = branch;
      node.bound = std::max(node.bound, sum);
      double value = 0;
      std::vector<double> vector(width_);
      for (std::size_t k = 0; k < width_; ++k) {
        vector[k] = t_.offset[k] + t_.end[k] * std::exp(chosen[k]);
        value += slope_[k] * vector[k];
      }
      if (value < best_) {
        best_ = value;
        best_vector_ = std::move(vector);
      }
      if (branch < 0) {
        node.bound = value;
        break;
      }
      tangent = chosen;
    }
    return node;
  }

  const Together& t_;
  const int choices_;
  const std::vector<double>& slope_;
  const std::size_t width_;
  std::vector<double> drop_, keep_;
  double best_ = 1e300;
  std::vector<double> best_vector_;
};

// Moves weight from the atom with the largest slope·F to the one with the least, as far as that
// helps, some times. Pairwise Frank and Wolfe within the atoms.
void Correct(const Together& t, const std::vector<std::vector<double>>& atoms,
             std::vector<double>& share, std::vector<double>& x, int rounds) {
  const std::size_t width = t.width();
  for (int r = 0; r < rounds; ++r) {
    const Penalty here = PenaltyAt(t, x);
    std::size_t from = atoms.size(), to = 0;
    std::vector<double> along(atoms.size());
    for (std::size_t a = 0; a < atoms.size(); ++a) {
      along[a] = std::inner_product(here.slope.begin(), here.slope.end(), atoms[a].begin(), 0.0);
      if (along[a] < along[to]) to = a;
      if (share[a] > 0 && (from == atoms.size() || along[a] > along[from])) from = a;
    }
    if (from == atoms.size() || !(along[from] > along[to] + 1e-12 * here.value)) return;
    // The penalty is convex along the way: bisection on its slope.
    double low = 0, high = share[from];
    std::vector<double> y(width);
    const auto at = [&](double s) {
      for (std::size_t k = 0; k < width; ++k) y[k] = x[k] + s * (atoms[to][k] - atoms[from][k]);
      const Penalty p = PenaltyAt(t, y);
      double slope = 0;
      for (std::size_t k = 0; k < width; ++k) slope += p.slope[k] * (atoms[to][k] - atoms[from][k]);
      return slope;
    };
    double s = high;
    if (at(high) > 0) {
      for (int b = 0; b < 40; ++b) {
        s = (low + high) / 2;
        (at(s) > 0 ? high : low) = s;
      }
      s = low;
      at(s);
    }
    if (!(s > 0)) return;
    x = y;
    share[to] += s;
    share[from] = std::max(0.0, share[from] - s);
    if (s >= high) share[from] = 0;
  }
}

}  // namespace

double DroppedStepsBound(const SharedProblem& problem, int blocks, const Ends& ends, double border,
                         double enough, const std::function<bool()>& stop) {
  const Model& model = *problem.model;
  const int choices = problem.steps() - 1;
  double skipped = blocks == 1 ? 1.0 : 0.0;  // G
  for (std::size_t c = 0; blocks == 1 && c < problem.width(); ++c) {
    skipped = std::min(skipped, std::exp(problem.total * problem.Rate(problem.steps())[c]));
  }
  double alone = 0;  // of the coordinates that are not looked at together
  Together t;
  // More numbers than that take too long; then only every so many-th coordinate is looked at.
  constexpr double kNumbers = 5e6;
  const auto stride =
      static_cast<std::size_t>(1 + static_cast<double>(problem.width()) * choices / kNumbers);
  for (std::size_t c = 0; c < problem.width(); ++c) {
    const int k = problem.coordinate[c];
    bool together = c % stride == 0;
    for (int s = 1; s <= choices; ++s) together = together && model.A(s)[k] > 0;
    if (!together) {
      const double off =
          std::max({0.0, problem.tau[c] - ends.high[c], ends.low[c] - problem.tau[c]});
      alone += problem.weight[c] * off * off;
      continue;
    }
    t.column.push_back(c);
    t.lower.push_back(model.lambda()[k] <= border ? 1 : 0);
    t.weight.push_back(problem.weight[c]);
    t.tau.push_back(problem.tau[c]);
    // A little beyond the ends, where the best plans of single coordinates lie.
    t.low.push_back(ends.low[c] * (1 - 1e-9));
    t.high.push_back(ends.high[c] * (1 + 1e-9));
    t.offset.push_back(skipped * model.A(problem.steps())[k]);
    t.end.push_back(model.A(problem.steps())[k] - t.offset.back());
  }
  const std::size_t width = t.width();
  double bound = DistanceToEnds(problem, ends);
  if (width == 0 || choices == 0) return bound;
  for (int s = 1; s <= choices; ++s) {
    for (std::size_t c : t.column) t.log_a.push_back(std::log(model.A(s)[problem.coordinate[c]]));
  }
  // Nothing dropped, to begin with.
  std::vector<double> x = t.end;
  for (std::size_t at = 0; at < t.log_a.size(); ++at) x[at % width] *= std::exp(t.log_a[at]);
  for (std::size_t k = 0; k < width; ++k) x[k] += t.offset[k];
  std::vector<std::vector<double>> atoms = {x};
  std::vector<double> share = {1.0};
  constexpr int kRounds = 200, kAtoms = 200;
  const int nodes =
      static_cast<int>(std::clamp(2e7 / (4.0 * static_cast<double>(t.log_a.size())), 4.0, 4000.0));
  for (int round = 0; round < kRounds && atoms.size() < kAtoms; ++round) {
    if (stop && stop()) break;
    const Penalty here = PenaltyAt(t, x);
    const double product = std::inner_product(here.slope.begin(), here.slope.end(), x.begin(), 0.0);
    LinearMinimum minimum(t, choices, here.slope);
    LinearMinimum::Result least = minimum.Run(nodes, 1e-4 * here.value, stop);
    bound = std::max(bound, alone + here.value - product + least.bound);
    if (bound >= enough) break;
    // No more to gain.
    if (alone + here.value - bound <= 1e-4 * here.value) break;
    atoms.push_back(std::move(least.vector));
    share.push_back(0);
    Correct(t, atoms, share, x, 50);
    if (PenaltyAt(t, x).value < here.value * (1 - 1e-7)) continue;
    if (!t.flat) break;
    t.flat = false;
  }
  return bound;
}

}  // namespace mergeplan::search
