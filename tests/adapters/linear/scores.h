#pragma once

#include <cmath>
#include <cstdint>

namespace mergeplan::testing {

// Two-sided at 4.5 standard errors: 7e-6 per check where the normal law holds. The seeds are fixed.
inline constexpr double kLimit = 4.5;

struct Scores {
  double mean, second;  // distance from the law in standard errors
};

// Of `trials` shrinkages against the moments that the law has for step size g.
inline Scores Compare(const double* gamma, int trials, double g, int batch, std::int64_t updates) {
  const double b = batch, k = static_cast<double>(updates);
  const double m2 = 1 + 2 / b, m3 = m2 * (1 + 4 / b), m4 = m3 * (1 + 6 / b);
  const double first = std::pow(1 - g, k);
  const double second = std::pow((1 - g) * (1 - g) + 2 * g * g / b, k);
  const double fourth =
      std::pow(1 - 4 * g + 6 * g * g * m2 - 4 * std::pow(g, 3) * m3 + std::pow(g, 4) * m4, k);
  double sum = 0, squares = 0;
  for (int t = 0; t < trials; ++t) {
    sum += gamma[t];
    squares += gamma[t] * gamma[t];
  }
  return {(sum / trials - first) / std::sqrt((second - first * first) / trials),
          (squares / trials - second) / std::sqrt((fourth - second * second) / trials)};
}

}  // namespace mergeplan::testing
