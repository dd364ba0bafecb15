#include "planner/search/shared/ends.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/search/parallel.h"

namespace mergeplan::search {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool Jumps(const Model& model) {
  return model.init() == Init::kJump || model.init() == Init::kChildJump;
}

// A part with the training s has the value `trained` + (start - trained) e^{-rate s} at the least
// (or the most).
struct PartEnd {
  double trained, start, rate;
  double At(double s) const {
    const double e = -rate * s;
    return e < -0.7 ? trained + (start - trained) * std::exp(e)
                    : start + (trained - start) * -std::expm1(e);
  }
};

PartEnd EndOf(const SharedProblem& problem, std::size_t column, int i, int j, double below,
              bool largest) {
  const Model& model = *problem.model;
  const int k = problem.coordinate[column];
  const double a = model.A(j)[k], rate = -problem.Rate(j)[column];
  if (i == j) return {a, a, rate};
  if (!Jumps(model)) return {a * below, a, rate};
  const double jump = model.ConstantStart(i, j, k);
  // Rounding must not turn the two round.
  return {largest ? std::max(a * below, jump) : jump, jump, rate};
}

// The factor by which step t < j enters the product of the steps before j.
double StepFactor(const SharedProblem& problem, std::size_t column, int t, bool largest) {
  const double a = problem.model->A(t)[problem.coordinate[column]];
  if (Jumps(*problem.model)) return a;
  return largest ? std::max(1.0, a) : std::min(1.0, a);
}

// min (or max) over s in [0, total] of log(part) + price s (or - price s).
double Priced(const PartEnd& part, double price, double total, bool largest) {
  if (price <= 0) return std::log(part.At(total));
  double s = 0;
  const double gap = part.start - part.trained;  // >= 0 at the least, <= 0 at the most
  const double left = largest ? part.rate + price : part.rate - price;
  if (gap != 0 && left > 0) {
    const double gamma = price * part.trained / (std::abs(gap) * left);
    s = gamma <= 0 ? total : std::clamp(-std::log(gamma) / part.rate, 0.0, total);
  }
  return std::log(part.At(s)) + (largest ? -price : price) * s;
}

// log of the bound at a price.
double LogEnd(const SharedProblem& problem, std::size_t column, int blocks, bool largest,
              double price) {
  const int T = problem.steps();
  const double worst = largest ? -kInfinity : kInfinity;
  // best[n][j]: n blocks over 1..j.
  std::vector<std::vector<double>> best(blocks + 1, std::vector<double>(T + 1, worst));
  best[0][0] = 0;
  for (int j = 1; j <= T; ++j) {
    double below = 1;
    for (int i = j; i >= 1; --i) {
      if (i < j) below *= StepFactor(problem, column, i, largest);
      const double part =
          Priced(EndOf(problem, column, i, j, below, largest), price, problem.total, largest);
      for (int n = 1; n <= blocks; ++n) {
        // A block that cannot be completed by the rest, or has no prefix, is no block.
        if (i - 1 < n - 1 || T - j < blocks - n || (n == 1) != (i == 1)) continue;
        const double whole = best[n - 1][i - 1] + part;
        best[n][j] = largest ? std::max(best[n][j], whole) : std::min(best[n][j], whole);
      }
    }
  }
  const double paid = price * problem.total;
  return best[blocks][T] + (largest ? paid : -paid);
}

// The best bound over prices: concave (convex) in the price, so a search by thirds over its
// logarithm will do; every price is sound.
double BestLogEnd(const SharedProblem& problem, std::size_t column, int blocks, bool largest,
                  int prices, double at_zero, const std::function<bool()>& stop) {
  double highest = 0;
  for (int t = 1; t <= problem.steps(); ++t) {
    highest = std::max(highest, -problem.Rate(t)[column]);
  }
  const auto at = [&](double log_price) {
    const double end = LogEnd(problem, column, blocks, largest, std::exp(log_price));
    return largest ? -end : end;
  };
  double best = largest ? -at_zero : at_zero;
  double from = std::log(highest) - std::min(200.0, highest * problem.total) - 3;
  double to = std::log(highest);
  constexpr double kGolden = 0.6180339887498949;
  double a = to - kGolden * (to - from), b = from + kGolden * (to - from);
  double fa = at(a), fb = at(b);
  for (int n = 2; n < prices && !(stop && stop()); ++n) {
    best = std::max({best, fa, fb});
    if (fa >= fb) {
      to = b, b = a, fb = fa;
      a = to - kGolden * (to - from);
      fa = at(a);
    } else {
      from = a, a = b, fa = fb;
      b = from + kGolden * (to - from);
      fb = at(b);
    }
  }
  best = std::max({best, fa, fb});
  return largest ? -best : best;
}

}  // namespace

Ends EndsOfValues(const SharedProblem& problem, int blocks, int threads,
                  const std::function<bool()>& stop) {
  const std::size_t width = problem.width();
  const int T = problem.steps();
  Ends ends{std::vector<double>(width, 0.0), std::vector<double>(width, kInfinity)};
  if (blocks == 1) {
    for (std::size_t k = 0; k < width; ++k) {
      double least = 1, largest = 1;
      for (int t = 1; t < T; ++t) {
        least *= StepFactor(problem, k, t, false);
        largest *= StepFactor(problem, k, t, true);
      }
      ends.low[k] = EndOf(problem, k, 1, T, least, false).At(problem.total);
      ends.high[k] = EndOf(problem, k, 1, T, largest, true).At(problem.total);
    }
    return ends;
  }
  constexpr int kPrices = 28;
  constexpr double kRounding = 1e-13;  // of the logarithms' sums, amply
  ParallelFor(threads, static_cast<int>(width), [&](int k) {
    if (stop && stop()) return;
    double low = LogEnd(problem, k, blocks, false, 0);
    double high = LogEnd(problem, k, blocks, true, 0);
    const double tau = problem.tau[k];
    if (tau < std::exp(low)) {
      low = BestLogEnd(problem, k, blocks, false, kPrices, low, stop);
    } else if (tau > std::exp(high)) {
      high = BestLogEnd(problem, k, blocks, true, kPrices, high, stop);
    }
    ends.low[k] = std::exp(low) * (1 - kRounding);
    ends.high[k] = std::exp(high) * (1 + kRounding);
  });
  return ends;
}

double DistanceToEnds(const SharedProblem& problem, const Ends& ends) {
  double sum = 0;
  for (std::size_t k = 0; k < problem.width(); ++k) {
    const double off = std::max({0.0, problem.tau[k] - ends.high[k], ends.low[k] - problem.tau[k]});
    sum += problem.weight[k] * off * off;
  }
  return sum;
}

VanillaSides WhereVanillaIsExtreme(const SharedProblem& problem) {
  const Model& model = *problem.model;
  const int T = problem.steps();
  VanillaSides out{true, std::vector<signed char>(problem.width(), 0)};
  for (std::size_t c = 0; c < problem.width(); ++c) {
    const int k = problem.coordinate[c];
    bool at_most_one = true, at_least_one = true;
    double product = 1;
    for (int t = 1; t <= T; ++t) {
      const double a = model.A(t)[k];
      product *= a;
      if (t == T) break;
      at_most_one = at_most_one && a <= 1;
      at_least_one = at_least_one && a >= 1;
    }
    // Beyond every student of so many blocks, up to rounding: the teacher's product is.
    const double rounding = model.Rounding(k, product, problem.tau[c]);
    if ((Jumps(model) || at_least_one) && problem.tau[c] >= product - rounding) {
      out.side[c] = 1;
    } else if (!Jumps(model) && at_most_one && problem.tau[c] <= product + rounding) {
      out.side[c] = -1;
    } else {
      out.everywhere = false;
    }
  }
  return out;
}

}  // namespace mergeplan::search
