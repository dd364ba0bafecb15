#include "planner/gaussianity/dip.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <vector>

#include "planner/gaussianity/dip_table.h"

namespace mergeplan {
namespace {

// The empirical distribution at its distinct values: its limit from the left and its value, in
// units of one sample.
struct Steps {
  std::vector<double> x, below, upto;
};

Steps StepsOf(absl::Span<const double> sorted) {
  Steps out;
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    if (out.x.empty() || sorted[k] != out.x.back()) {
      out.x.push_back(sorted[k]);
      out.below.push_back(static_cast<double>(k));
      out.upto.push_back(0);
    }
    out.upto.back() = static_cast<double>(k + 1);
  }
  return out;
}

// The convex minorant of the points (x, y) of first .. last: its corners, ascending. With `sign` -1
// the concave majorant.
std::vector<std::size_t> Hull(const std::vector<double>& x, const std::vector<double>& y,
                              std::size_t first, std::size_t last, double sign) {
  std::vector<std::size_t> hull;
  for (std::size_t k = first; k <= last; ++k) {
    while (hull.size() >= 2) {
      const std::size_t a = hull[hull.size() - 2], b = hull.back();
      // Stays where it lies below the chord from a to k.
      if (sign * (y[b] - y[a]) * (x[k] - x[a]) < sign * (y[k] - y[a]) * (x[b] - x[a])) break;
      hull.pop_back();
    }
    hull.push_back(k);
  }
  return hull;
}

// The hull's height at every point of first .. last, and the corners around it: `from` is the last
// corner up to the point, `to` the first from it on.
struct Heights {
  std::vector<double> y;
  std::vector<std::size_t> from, to;
};

Heights HeightsOf(const std::vector<std::size_t>& hull, const std::vector<double>& x,
                  const std::vector<double>& y) {
  const std::size_t first = hull.front(), size = hull.back() - first + 1;
  Heights out{std::vector<double>(size), std::vector<std::size_t>(size),
              std::vector<std::size_t>(size)};
  for (std::size_t h = 0; h < hull.size(); ++h) {
    const std::size_t a = hull[h];
    out.y[a - first] = y[a];
    out.from[a - first] = out.to[a - first] = a;
    if (h + 1 == hull.size()) break;
    const std::size_t b = hull[h + 1];
    const double slope = (y[b] - y[a]) / (x[b] - x[a]);
    for (std::size_t k = a + 1; k < b; ++k) {
      out.y[k - first] = y[a] + slope * (x[k] - x[a]);
      out.from[k - first] = a;
      out.to[k - first] = b;
    }
  }
  return out;
}

}  // namespace

double Dip(absl::Span<const double> sorted) {
  const Steps s = StepsOf(sorted);
  if (s.x.size() < 2) return 0;
  std::size_t low = 0, high = s.x.size() - 1;
  double widest = 1;  // twice the dip, in samples
  while (true) {
    const Heights under = HeightsOf(Hull(s.x, s.below, low, high, 1), s.x, s.below);
    const Heights over = HeightsOf(Hull(s.x, s.upto, low, high, -1), s.x, s.upto);
    // Where the two are farthest apart, which is at a corner of one of them: the modal interval
    // goes from the corner of the minorant up to there to that of the majorant from there on.
    double gap = 0;
    std::size_t new_low = low, new_high = high;
    for (std::size_t k = low; k <= high; ++k) {
      const double here = over.y[k - low] - under.y[k - low];
      if (here <= gap) continue;
      gap = here;
      new_low = under.from[k - low];
      new_high = over.to[k - low];
    }
    if (gap <= widest) break;
    // The data over the minorant to the left, and under the majorant to the right, of the interval.
    // (At its ends a heap of equal values may be the mode.)
    for (std::size_t k = low; k < new_low; ++k) {
      widest = std::max(widest, s.upto[k] - under.y[k - low]);
    }
    for (std::size_t k = new_high + 1; k <= high; ++k) {
      widest = std::max(widest, over.y[k - low] - s.below[k]);
    }
    if (new_low == low && new_high == high) break;
    low = new_low;
    high = new_high;
  }
  return widest / (2 * static_cast<double>(sorted.size()));
}

double DipPValue(double dip, double n) {
  if (n < 8) return 1;
  // Quantiles of sqrt(n) dip hardly move with n; between the table's sizes linear in 1 / sqrt(n).
  std::size_t row = 0;
  while (row + 2 < std::size(kDipSizes) && kDipSizes[row + 1] <= n) ++row;
  const double at = 1 / std::sqrt(n), a = 1 / std::sqrt(kDipSizes[row]),
               b = 1 / std::sqrt(kDipSizes[row + 1]);
  const double share = std::clamp((a - at) / (a - b), 0.0, 1.0);
  const double scaled = std::sqrt(n) * dip;
  const auto quantile = [&](std::size_t k) {
    return (1 - share) * kDipQuantiles[row][k] + share * kDipQuantiles[row + 1][k];
  };
  const std::size_t last = std::size(kDipTails) - 1;
  if (scaled <= quantile(0)) return 1;
  for (std::size_t k = 0; k < last; ++k) {
    const double from = quantile(k), to = quantile(k + 1);
    if (scaled >= to) continue;
    // Tails fall about exponentially.
    const double part = to > from ? (scaled - from) / (to - from) : 0;
    return std::exp((1 - part) * std::log(kDipTails[k]) + part * std::log(kDipTails[k + 1]));
  }
  return kDipTails[last];
}

}  // namespace mergeplan
