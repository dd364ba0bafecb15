#include "planner/gaussianity/univariate.h"

#include <cmath>

#include "planner/gaussianity/tails.h"

namespace mergeplan {

double SkewnessPValue(double skewness, double n) {
  if (n < 8) return 1;
  const double y = skewness * std::sqrt((n + 1) * (n + 3) / (6 * (n - 2)));
  const double beta =
      3 * (n * n + 27 * n - 70) * (n + 1) * (n + 3) / ((n - 2) * (n + 5) * (n + 7) * (n + 9));
  const double w = std::sqrt(2 * (beta - 1)) - 1;  // the square of the paper's W
  const double delta = 1 / std::sqrt(0.5 * std::log(w));
  const double alpha = std::sqrt(2 / (w - 1));
  return NormalTwoSided(delta * std::asinh(y / alpha));
}

double KurtosisPValue(double kurtosis, double n) {
  if (n < 20) return 1;
  const double mean = 3 * (n - 1) / (n + 1);
  const double variance = 24 * n * (n - 2) * (n - 3) / ((n + 1) * (n + 1) * (n + 3) * (n + 5));
  const double x = (kurtosis - mean) / std::sqrt(variance);
  const double skew = 6 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9)) *
                      std::sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)));
  const double a = 6 + 8 / skew * (2 / skew + std::sqrt(1 + 4 / (skew * skew)));
  const double below = 1 + x * std::sqrt(2 / (a - 4));
  // Below -1 / sqrt(2 / (a - 4)) the cube root changes its sign and goes on: the smaller, the
  // worse.
  const double root = std::cbrt((1 - 2 / a) / below);
  return NormalTwoSided((1 - 2 / (9 * a) - root) / std::sqrt(2 / (9 * a)));
}

Shape ShapeOf(absl::Span<const double> values) {
  Shape out;
  const double n = static_cast<double>(values.size());
  if (values.empty()) return out;
  for (const double v : values) out.mean += v / n;
  double m2 = 0, m3 = 0, m4 = 0;
  for (const double v : values) {
    const double x = v - out.mean, square = x * x;
    m2 += square;
    m3 += square * x;
    m4 += square * square;
  }
  out.deviation = std::sqrt(m2 / n);
  const double kurtosis = m4 / m2 / m2 * n, skewness = m3 / m2 / std::sqrt(m2) * std::sqrt(n);
  if (m2 > 0 && std::isfinite(kurtosis) && std::isfinite(skewness)) {
    out.kurtosis = kurtosis;
    out.skewness = skewness;
  }
  return out;
}

}  // namespace mergeplan
