#include "planner/spectrum/figures.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "planner/spectrum/intervals.h"

namespace mergeplan {

BasisFigures FiguresOf(const Basis& basis, double confidence) {
  BasisFigures out;
  const double z = NormalQuantile(confidence);
  double total = 0, above = 0, entropy = 0, squares = 0, largest = 0;
  for (const double v : basis.variances) largest = std::max(largest, v);
  std::vector<double> samples;
  for (std::size_t i = 0; i < basis.variances.size(); ++i) {
    const double v = basis.variances[i], low = basis.variances_low[i],
                 high = basis.variances_high[i];
    // In units of the largest, whose squares stay in range.
    const double share = largest > 0 ? v / largest : 0;
    total += share;
    squares += share * share;
    if (v > 1) above += share;
    if (low <= 1 && 1 < high) ++out.undecided;
    const double error = low > 0 ? std::log(high / low) / (2 * z) : 0;
    const double log = std::log(v);
    out.distance.push_back(v == 1 ? 0.0
                           : error > 0
                               ? log / error
                               : std::copysign(std::numeric_limits<double>::infinity(), log));
    // The variance of log v is 2 / (n - 1) for normal data.
    if (error > 0) samples.push_back(2 / (error * error) + 1);
  }
  if (total > 0) {
    for (const double v : basis.variances) {
      const double p = v / largest / total;
      if (p > 0) entropy -= p * std::log(p);
    }
    out.energy_above_one = above / total;
    out.effective_rank = std::exp(entropy);
    out.participation_ratio = total * total / squares;
  }
  if (!samples.empty()) {
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    out.effective_samples_median = *middle;
    out.effective_samples_least = *std::min_element(samples.begin(), samples.end());
  }
  return out;
}

}  // namespace mergeplan
