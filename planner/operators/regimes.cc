#include "planner/operators/regimes.h"

#include <algorithm>
#include <limits>

namespace mergeplan {

std::vector<double> Lambda0(const Schedule& schedule) {
  std::vector<double> out;
  for (int t = 1; t < schedule.steps(); ++t) {
    const double noise = schedule.sigma[t] * (schedule.sigma[t] - schedule.sigma[t - 1]);
    const double signal = schedule.alpha[t] * (schedule.alpha[t - 1] - schedule.alpha[t]);
    // A_t > 1 means signal * lambda > noise, and alpha/sigma falls, so that not both are <= 0.
    if (noise <= 0) {
      out.push_back(0);
    } else if (signal <= 0) {
      out.push_back(std::numeric_limits<double>::infinity());
    } else {
      out.push_back(noise / signal);
    }
  }
  return out;
}

Lambda0Range RangeOfLambda0(const Schedule& schedule) {
  const std::vector<double> all = Lambda0(schedule);
  if (all.empty()) return {};
  const auto [least, largest] = std::minmax_element(all.begin(), all.end());
  return {*least, *largest};
}

std::string_view ToString(VarianceRegime regime) {
  switch (regime) {
    case VarianceRegime::kUpToOne:
      return "up to 1";
    case VarianceRegime::kBelow:
      return "1..min lambda0";
    case VarianceRegime::kBetween:
      return "between";
    case VarianceRegime::kAbove:
      break;
  }
  return "above max lambda0";
}

VarianceRegime RegimeOf(double lambda, const Lambda0Range& range) {
  if (lambda <= 1) return VarianceRegime::kUpToOne;
  if (lambda < range.least) return VarianceRegime::kBelow;
  if (lambda > range.largest) return VarianceRegime::kAbove;
  return VarianceRegime::kBetween;
}

std::optional<Strategy> BestScalarStrategy(VarianceRegime regime) {
  switch (regime) {
    case VarianceRegime::kUpToOne:
      return Strategy::kBoot;
    case VarianceRegime::kBelow:
      return Strategy::kConsistency;
    case VarianceRegime::kBetween:
      return std::nullopt;
    case VarianceRegime::kAbove:
      break;
  }
  return Strategy::kVanilla;
}

}  // namespace mergeplan
