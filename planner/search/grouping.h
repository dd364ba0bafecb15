#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "planner/search/columns.h"

namespace mergeplan::search {

// One target for every distinct variance of positive weight (of tables: for every distinct
// coordinate); of equal ones the weights add up.
std::vector<Target> DistinctTargets(const Model& model);

// A smaller problem that bounds the model's from below: neighbouring variances stand together at
// their weighted mean.
//
// Let a group hold the coordinates k with weights w_k, W = sum w_k, mean m = sum w_k lambda_k / W
// and variance s2 = sum w_k (lambda_k - m)^2 / W. For every plan, whichever sign is +1 or -1,
//   sum w_k (tau_k - V_k)^2 >= W max(0, mean of sign (tau_k - V_k))^2        (Cauchy-Schwarz)
// and by Taylor at m, where the first order averages to nothing,
//   mean of V_k = V(m) + s2 V''/2 with some V'' between the ends that BoundCurvature gives.
// So the group is one target at m with the weight W and the exact mean of the tau_k, less
// s2 V''/2 at its largest where larger values are better, at its least where smaller ones are.
struct Grouping {
  Model model;  // of the group means
  std::vector<Target> targets;
  double loss = 0;  // estimate: how much lower the bound is than the objective, at the plan given
};

// Groups so that the loss at a plan of the values given comes to about `loss` or less, with no more
// than `most` groups. nullopt where `stop` said true. Variances must be in the model (no tables).
// O(T^3) for each of some 20 ranges of variances, O(d log d) otherwise.
std::optional<Grouping> MakeGroups(const Model& model, absl::Span<const double> values, Shape shape,
                                   int blocks, double loss, std::size_t most, int threads,
                                   const std::function<bool()>& stop);

}  // namespace mergeplan::search
