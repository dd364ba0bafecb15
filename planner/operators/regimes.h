#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "planner/operators/canonical.h"
#include "planner/operators/model.h"
#include "planner/schedule/schedule.h"

namespace mergeplan {

// lambda_0(t) = sigma_t (sigma_t - sigma_{t-1}) / (alpha_t (alpha_{t-1} - alpha_t)) for t = 1..T-1
// (entry t-1): A_t > 1 exactly where the variance is above it (proof of
// thm:vanilla_distillation_optimality). Above 1 on variance preserving schedules; elsewhere it may
// be anything, 0 where A_t > 1 for every variance, infinite where for none. In the coordinates of
// the schedule. O(T).
std::vector<double> Lambda0(const Schedule& schedule);

// The least and the largest of them. For T = 1 there is none, and both are 1.
struct Lambda0Range {
  double least = 1, largest = 1;
};
Lambda0Range RangeOfLambda0(const Schedule& schedule);

// Where the variance of one dimension lies (in the coordinates of the schedule).
enum class VarianceRegime {
  kUpToOne,  // lambda <= 1: no step amplifies, and the surrogate is the teacher's product
  kBelow,    // 1 < lambda < min lambda_0: no step before the noisiest amplifies
  kBetween,  // min lambda_0 <= lambda <= max lambda_0
  kAbove,    // lambda > max lambda_0: every step but perhaps the noisiest amplifies
};

// "up to 1", "1..min lambda0", "between", "above max lambda0".
std::string_view ToString(VarianceRegime regime);

VarianceRegime RegimeOf(double lambda, const Lambda0Range& range);

// What is best for a single dimension in that regime with a variance preserving schedule, the start
// `child`, the surrogate reference and one block, whatever the shrinkage: boot
// (thm:sequential_boot_optimality; theorem 2 of THEOREMS.md), consistency (theorem 2), nothing that
// holds in general, vanilla (thm:vanilla_distillation_optimality; theorem 3). All proven. For a
// given problem, of any number of dimensions and under every start and reference, ask ProvenBest.
std::optional<Strategy> BestScalarStrategy(VarianceRegime regime);

// A strategy that no n-ary plan beats, and what proves it.
struct ProvenStrategy {
  Strategy strategy;
  std::string_view theorem;  // "theorem 1": the headline in THEOREMS.md
  std::string_view reason;   // half a sentence for people
};

// The strategy that is proven best for the model: its conditions are checked on the model's tables,
// in every dimension of positive weight. nullopt where no theorem applies, which says nothing about
// which plan is best.
//
// `blocks` = 1: CanonicalPlan(strategy, T) is an optimal plan, n-ary and binary. `blocks` = N > 1:
// some optimal plan with N blocks has every block merged by the strategy; its borders are open, and
// are not those of CanonicalPlan(strategy, T, N) in general. With N >= T-1 all strategies make the
// same of given borders, and one is named. nullopt where N is not in 1..T.
//
// It holds where every merge may be trained for the budget's time, so not where the number of
// merges or rounds is limited, nor where merges at the same noisy level are trained for different
// times. "Optimal" is up to the rounding of the model's tables, which Model::Tolerance covers.
// O(T d).
std::optional<ProvenStrategy> ProvenBest(const Model& model, int blocks = 1);

}  // namespace mergeplan
