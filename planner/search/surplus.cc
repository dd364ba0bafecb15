#include "planner/search/surplus.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/search/kernels.h"

namespace mergeplan::search {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

class Maker {
 public:
  Maker(const Bounds& bounds, const Survivors& survivors, double threshold,
        const std::function<bool()>& stop)
      : bounds_(bounds),
        survivors_(survivors),
        threshold_(threshold),
        stop_(stop),
        T_(bounds.steps),
        N_(bounds.blocks),
        n_(bounds.columns.size()),
        at_(bounds.steps),
        sign_(bounds.columns.sign.data()),
        heads_(static_cast<std::size_t>(N_) * T_, n_, 0),
        tails_(static_cast<std::size_t>(N_) * T_, n_, 0),
        has_head_(static_cast<std::size_t>(N_) * T_, 0),
        has_tail_(static_cast<std::size_t>(N_) * T_, 0),
        weight_(n_, 0),
        x_(n_),
        node_(at_.size(), -1) {}

  std::optional<Surplus> Run() {
    Surplus out;
    out.part.assign(at_.size(), kInf);
    out.prefix.assign(static_cast<std::size_t>(N_) * T_, kInf);
    if (!Heads() || !Tails()) return std::nullopt;
    if (has_tail_[Layer(N_, 1)] == 0) return out;  // no plan is left
    Weights();
    std::vector<double> before(out.prefix.size(), kInf), behind(out.prefix.size(), kInf);
    if (!Paths(before, behind)) return std::nullopt;
    for (int n = 1; n < N_; ++n) {
      for (int j = n; j <= LastEnd(n); ++j) {
        if (has_tail_[Layer(N_ - n, j + 1)] != 0) {
          out.prefix[bounds_.Layer(n, j)] = behind[Layer(N_ - n, j + 1)];
        }
      }
    }
    out.prefix[bounds_.root()] = 0;
    for (int i = 1; i <= T_; ++i) {
      if (Stopped()) return std::nullopt;
      for (int j = T_; j >= i; --j) {
        double& part = out.part[at_(i, j)];
        if (i > 1) part = out.part[at_(i - 1, j)];
        if (j < T_) part = std::min(part, out.part[at_(i, j + 1)]);
        for (int n = 1; n <= N_; ++n) {
          if (!Block(n, i, j)) continue;
          if ((n > 1 && has_head_[Layer(n - 1, i - 1)] == 0) ||
              (n < N_ && has_tail_[Layer(N_ - n, j + 1)] == 0)) {
            continue;
          }
          part = std::min(part, (n > 1 ? Known(n - 1, i - 1, before) : 0) +
                                    (n < N_ ? behind[Layer(N_ - n, j + 1)] : 0));
        }
      }
    }
    return out;
  }

 private:
  bool Stopped() const { return stop_ && stop_(); }
  std::size_t Layer(int n, int j) const { return static_cast<std::size_t>(n - 1) * T_ + (j - 1); }
  int LastEnd(int n) const { return T_ - (N_ - n); }

  // Is [i,j] the n-th block of a plan that is left?
  bool Block(int n, int i, int j) const {
    if ((n == 1) != (i == 1) || (n == N_) != (j == T_)) return false;
    if (i < n || j > LastEnd(n) || survivors_.node(i, j) == nullptr) return false;
    if (n == 1) return true;
    const absl::Span<const int> borders = survivors_.borders(n, j);
    return std::binary_search(borders.begin(), borders.end(), i - 1);
  }

  void Keep(const double* value, std::size_t layer, Rows& best, std::vector<char>& has) {
    if (has[layer] != 0) {
      Absorb(n_, best[layer], value, sign_);
    } else {
      std::copy_n(value, n_, best[layer]);
      has[layer] = 1;
    }
  }

  // The best n blocks over 1..j and over i..T, column by column.
  bool Heads() {
    for (int n = 1; n < N_; ++n) {
      if (Stopped()) return false;
      for (int j = n; j <= LastEnd(n); ++j) {
        for (int i = n; i <= j; ++i) {
          if (!Block(n, i, j) || (n > 1 && has_head_[Layer(n - 1, i - 1)] == 0)) continue;
          const double* value = survivors_.node(i, j);
          if (n > 1) {
            CandidateValue(n_, product_, heads_[Layer(n - 1, i - 1)], value, x_.data());
            value = x_.data();
          }
          Keep(value, Layer(n, j), heads_, has_head_);
        }
      }
    }
    return true;
  }
  bool Tails() {
    for (int n = 1; n <= N_; ++n) {
      if (Stopped()) return false;
      const int block = N_ - n + 1;
      for (int i = block; i <= LastEnd(block); ++i) {
        for (int j = i; j <= LastEnd(block); ++j) {
          if (!Block(block, i, j) || (n > 1 && has_tail_[Layer(n - 1, j + 1)] == 0)) continue;
          const double* value = survivors_.node(i, j);
          if (n > 1) {
            CandidateValue(n_, product_, value, tails_[Layer(n - 1, j + 1)], x_.data());
            value = x_.data();
          }
          Keep(value, Layer(n, i), tails_, has_tail_);
        }
      }
    }
    return true;
  }

  // 2 G K by column.
  void Weights() {
    const double* a = bounds_.prefix_a[bounds_.root()];
    const double* b = bounds_.prefix_b[bounds_.root()];
    const double* best = tails_[Layer(N_, 1)];
    for (std::size_t c = 0; c < n_; ++c) {
      const double least = std::max(0.0, a[c] + b[c] * best[c]);
      const double value = sign_[c] > 0 ? a[c] - std::sqrt(threshold_) : least - a[c];
      const double weight = 2 * least * std::max(0.0, value);
      weight_[c] = weight < kInf ? weight : 0;
    }
    const int ratios = 2 * (N_ - 1);
    most_ = 0.3 / std::max(1, ratios - 1);
  }

  // Of a value that is no better than the best one: sum_c 2 G K 0.85 x'.
  double Cost(const double* value, const double* best) const {
    double sum = 0;
    for (std::size_t c = 0; c < n_; ++c) {
      if (!(best[c] > 0)) continue;
      const double x = sign_[c] * (best[c] - value[c]) / best[c];
      sum += weight_[c] * std::clamp(x, 0.0, most_);
    }
    return 0.85 * sum;
  }

  // The least of the kept nodes over [i,j].
  double Node(int i, int j) {
    double& cost = node_[at_(i, j)];
    if (cost >= 0) return cost;
    cost = kInf;
    const double* best = survivors_.node(i, j);
    survivors_.rows(i, j, [&](const double* row) { cost = std::min(cost, Cost(row, best)); });
    return cost;
  }

  // Least sums over the first n blocks, and the last n.
  bool Paths(std::vector<double>& before, std::vector<double>& behind) {
    for (int n = 1; n < N_; ++n) {
      if (Stopped()) return false;
      for (int j = n; j <= LastEnd(n); ++j) {
        const std::size_t layer = Layer(n, j);
        for (int i = n; i <= j; ++i) {
          if (!Block(n, i, j) || (n > 1 && has_head_[Layer(n - 1, i - 1)] == 0)) continue;
          double cost = Node(i, j);
          if (n > 1) {
            CandidateValue(n_, product_, heads_[Layer(n - 1, i - 1)], survivors_.node(i, j),
                           x_.data());
            cost += before[Layer(n - 1, i - 1)] + Cost(x_.data(), heads_[layer]);
          }
          before[layer] = std::min(before[layer], cost);
        }
      }
      const int block = N_ - n + 1;
      for (int i = block; i <= LastEnd(block); ++i) {
        const std::size_t layer = Layer(n, i);
        for (int j = i; j <= LastEnd(block); ++j) {
          if (!Block(block, i, j) || (n > 1 && has_tail_[Layer(n - 1, j + 1)] == 0)) continue;
          double cost = Node(i, j);
          if (n > 1) {
            CandidateValue(n_, product_, survivors_.node(i, j), tails_[Layer(n - 1, j + 1)],
                           x_.data());
            cost += behind[Layer(n - 1, j + 1)] + Cost(x_.data(), tails_[layer]);
          }
          behind[layer] = std::min(behind[layer], cost);
        }
      }
    }
    return true;
  }

  // What is left of it where the bounds know better heads.
  double Known(int n, int j, const std::vector<double>& before) const {
    const double* known = survivors_.prefix(n, j);
    const double* best = heads_[Layer(n, j)];
    if (known == nullptr) return kInf;
    double less = 0;
    for (std::size_t c = 0; c < n_; ++c) {
      if (best[c] > 0) {
        less += weight_[c] * 2 * std::max(0.0, sign_[c] * (best[c] - known[c]) / best[c]);
      } else if (weight_[c] > 0) {
        return 0;
      }
    }
    return std::max(0.0, before[Layer(n, j)] - less);
  }

  const Bounds& bounds_;
  const Survivors& survivors_;
  const double threshold_;
  const std::function<bool()>& stop_;
  const int T_, N_;
  const std::size_t n_;
  const Intervals at_;
  const double* sign_;
  const CandidateRule product_;
  Rows heads_, tails_;  // n blocks over 1..j, by Layer(n, j); over i..T, by Layer(n, i)
  std::vector<char> has_head_, has_tail_;
  std::vector<double> weight_, x_;
  std::vector<double> node_;  // by interval; negative: not made yet
  double most_ = 0;
};

}  // namespace

std::optional<Surplus> MakeSurplus(const Bounds& bounds, const Survivors& survivors,
                                   double threshold, const std::function<bool()>& stop) {
  return Maker(bounds, survivors, threshold, stop).Run();
}

}  // namespace mergeplan::search
