#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "planner/operators/canonical.h"
#include "planner/schedule/schedule.h"

namespace mergeplan {

// lambda_0(t) = sigma_t (sigma_t - sigma_{t-1}) / (alpha_t (alpha_{t-1} - alpha_t)) for t = 1..T-1
// (entry t-1): A_t > 1 exactly where the variance is above it (proof of
// thm:vanilla_distillation_optimality). 0 where A_t > 1 for every variance, infinite where for none
// (both only off variance preserving schedules). In the coordinates of the schedule. O(T).
std::vector<double> Lambda0(const Schedule& schedule);

// The least and the largest of them. For T = 1 there is none, and both are 1.
struct Lambda0Range {
  double least = 1, largest = 1;
};
Lambda0Range RangeOfLambda0(const Schedule& schedule);

// Where the variance of one dimension lies (in the coordinates of the schedule).
enum class VarianceRegime {
  kUpToOne,  // lambda <= 1
  kBelow,    // 1 < lambda < min lambda_0: no step amplifies
  kBetween,  // min lambda_0 <= lambda <= max lambda_0
  kAbove,    // lambda > max lambda_0: every step but the noisiest amplifies
};

// "up to 1", "1..min lambda0", "between", "above max lambda0".
std::string_view ToString(VarianceRegime regime);

VarianceRegime RegimeOf(double lambda, const Lambda0Range& range);

// What is best for a single dimension in that regime with a variance preserving schedule, the start
// `child`, the surrogate reference and one block: boot (thm:sequential_boot_optimality),
// consistency (observed, not proved), nothing canonical in general, vanilla
// (thm:vanilla_distillation_optimality).
std::optional<Strategy> BestScalarStrategy(VarianceRegime regime);

}  // namespace mergeplan
