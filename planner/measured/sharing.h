#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/measured/model.h"
#include "planner/measured/tables.h"
#include "planner/plan/plan.h"

namespace mergeplan {

// The largest convex curve that is nowhere above `curve` at 1, 2, 3, … updates; the first knot is
// at
// 1. It is the curve itself there where that is convex, and never rises. O(knots).
Curve ConvexBelow(const Curve& curve);

// The least u in 1..most at which one more update lowers factor * OwnCost(left(u), distance, 0) by
// no more than `price` (>= 0). `left` must be convex, as ConvexBelow gives it; since the square of
// a falling convex curve of numbers >= 0 is one too, this is the u that minimises the cost plus
// price * u, for both rules. O(knots + log updates).
std::int64_t UpdatesWorth(const Curve& left, Combine combine, double factor, double distance,
                          double price, std::int64_t most);

// The factors by which the own contributions of the plan's merges enter the student's: the products
// of the gain factors from the student down to them. In the order of plan.merges().
std::vector<double> PathFactors(const MeasuredModel& model, const Plan& plan, Combine combine);

// Shares `total` updates over the merges of a plan, at least one each, so that they add up to it
// and the student's error is the least. The error is sum_m factor_m OwnCost_m(u_m) + const: with
// convex curves the best allocation is that of the greedy algorithm, which gives update after
// update to the merge whose contribution it lowers most, and this is its result, found by looking
// for the price of an update. (Moving an update from m to n changes the error by a loss of m that
// is at least the price and a gain of n that is at most the price; a convex separable function that
// no such move lowers is at its minimum.) Where a curve is not convex the convex one below it is
// used, and the allocation need not be the best. Updates that lower nothing more go to the last
// merge. INVALID_ARGUMENT where there are fewer updates than merges. O(merges (knots + log total)).
absl::StatusOr<std::vector<std::int64_t>> ShareUpdates(const MeasuredModel& model, const Plan& plan,
                                                       Combine combine, std::int64_t total);

}  // namespace mergeplan
