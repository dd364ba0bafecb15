#include "planner/search/directions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace mergeplan::search {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kWider = 1e-9;

// Not a number becomes the end that says nothing.
double Least(double x) { return x > 1e-100 ? x * (1 - kWider) : 0; }
double Most(double x) { return x < 1e100 ? x * (1 + kWider) : kInf; }

double Share(double omg, double g, double u) {
  const double merged = omg * u + g;
  return merged > 0 ? omg * u / merged : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

Directions::Directions(const Bounds& bounds) : bounds_(bounds), levels_(bounds.steps + 1) {
  const int T = bounds.steps;
  levels_[T] = {1, 1};
  for (int m = T; m > 1; --m) {
    double least[2], most[2];
    for (int c = 0; c < 2; ++c) {
      const double omg = bounds.tables.omg[m - 1][c], g = bounds.tables.slope[m - 1][c];
      least[c] = Share(omg, g, bounds.least_product[m - 2][c]);
      most[c] = Share(omg, g, bounds.most_product[m - 2][c]);
    }
    const double low = Least(least[1] / most[0]), high = Most(most[1] / least[0]);
    levels_[m - 1] = {levels_[m].least * std::min(1.0, low), levels_[m].most * std::max(1.0, high)};
  }
}

void Directions::Set(const std::array<double, 2>& tangent, double threshold, Range turn) {
  const double* a = bounds_.prefix_a[bounds_.root()];
  const double* b = bounds_.prefix_b[bounds_.root()];
  double low[2], high[2], slope[2];
  for (int c = 0; c < 2; ++c) {
    slope[c] = tangent[c] * std::abs(b[c]);
    const double best = bounds_.best_end[c];
    double worst = bounds_.worst_end[c];
    // The largest error with which l is below the threshold.
    const double t = tangent[c], other = tangent[1 - c];
    const double least = a[1 - c] + b[1 - c] * bounds_.best_end[1 - c];
    const double rest = threshold - other * (2 * least - other);
    const double error = rest / (2 * t) + t / 2;
    const double size = std::abs(a[c]) + std::abs(rest / t) + t;
    if (t > 0 && error < kInf) {
      const double value = (error + kWider * size - a[c]) / b[c];
      if (bounds_.columns.sign[c] > 0 ? value > worst : value < worst) worst = value;
    }
    // A threshold that no plan is below leaves the ends crossed: all that is left is the best.
    if (bounds_.columns.sign[c] > 0 ? worst > best : worst < best) worst = best;
    low[c] = std::min(best, worst);
    high[c] = std::max(best, worst);
  }
  whole_ = {Least(turn.least * slope[1] * low[1] / (slope[0] * high[0])),
            Most(turn.most * slope[1] * high[1] / (slope[0] * low[0]))};
  if (!(low[0] > 0 && low[1] > 0 && slope[0] > 0 && slope[1] > 0)) whole_ = {0, kInf};
}

Directions::Range Directions::Of(int j, const std::array<double, 2>& least,
                                 const std::array<double, 2>& most) const {
  if (!(least[0] > 0 && least[1] > 0)) return {0, kInf};
  return {Least(whole_.least * levels_[j].least * least[0] / most[1]),
          Most(whole_.most * levels_[j].most * most[0] / least[1])};
}

}  // namespace mergeplan::search
