#include "planner/gaussianity/tails.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace mergeplan {

double NormalTwoSided(double z) { return std::erfc(std::abs(z) / std::sqrt(2.0)); }
double NormalUpper(double z) { return std::erfc(z / std::sqrt(2.0)) / 2; }

// The regularised upper incomplete gamma function Q(a, x): by its series where x is below the mean,
// else by Lentz's continued fraction. Both take about sqrt(a) terms.
double ChiSquaredUpper(double x, double freedom) {
  const double a = freedom / 2, y = x / 2;
  if (!(y > 0)) return 1;
  if (!std::isfinite(y)) return 0;
  const double front = std::exp(a * std::log(y) - y - std::lgamma(a));
  constexpr int kMost = 1'000'000;
  if (y < a + 1) {
    double term = 1 / a, sum = term;
    for (int k = 1; k < kMost && term > sum * 1e-17; ++k) sum += term *= y / (a + k);
    return std::clamp(1 - front * sum, 0.0, 1.0);
  }
  constexpr double kTiny = 1e-300;
  double b = y + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int k = 1; k < kMost; ++k) {
    const double an = -k * (k - a);
    b += 2;
    d = an * d + b;
    if (std::abs(d) < kTiny) d = kTiny;
    c = b + an / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    const double step = c * d;
    h *= step;
    if (std::abs(step - 1) < 1e-16) break;
  }
  return std::clamp(front * h, 0.0, 1.0);
}

std::vector<double> HolmAdjusted(absl::Span<const double> p_values) {
  const std::size_t m = p_values.size();
  std::vector<std::size_t> order(m);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> out(m);
  double largest = 0;
  for (std::size_t k = 0; k < m; ++k) {
    largest = std::max(largest, static_cast<double>(m - k) * p_values[order[k]]);
    out[order[k]] = std::min(1.0, largest);
  }
  return out;
}

}  // namespace mergeplan
