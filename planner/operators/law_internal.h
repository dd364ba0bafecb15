#pragma once

#include "absl/status/status.h"
#include "planner/operators/budget.h"
#include "planner/operators/model.h"

// What the two halves of law.h share. Not for other folders.
namespace mergeplan {

// E Gamma^2 = ((1 - g)^2 + 2 g^2 / B)^updates.
double SecondMomentOfShrinkage(const Budget& budget, double n);

// Where E Gamma^2 is below, Gamma counts as its mean: |Gamma| > 1e-15 has a probability below 1e-10
// (Chebyshev), and no run in float64 can see it.
inline constexpr double kNegligibleSecondMoment = 1e-40;

absl::Status CheckSgd(const Model& model);

}  // namespace mergeplan
