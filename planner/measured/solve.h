#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/measured/model.h"
#include "planner/measured/tables.h"
#include "planner/plan/plan.h"

namespace mergeplan {

struct MeasuredOptions {
  int student_steps = 1;  // N blocks, 1..T
  Combine combine = Combine::kSum;
  // One of the two: the updates that every merge trains, or the updates that all merges share, at
  // least one each. 1..kMostUpdates.
  std::int64_t updates = 0;
  std::int64_t total_updates = 0;
  int max_children = 0;  // of every merge, 2 or more; 0: any number
  int max_merges = 0;    // of the plan; 0: any number
  // How many steps an exact program may take (see TreeProgram::Effort); about 1e9 a second.
  double effort = 3e9;
};

struct MeasuredResult {
  Plan plan;
  std::vector<std::int64_t> updates;  // of every merge, in the order of plan.merges()
  double error = 0;                   // of the student, with every number at its value
  double lower_bound = 0;             // no plan and allocation asked for has an error below it
  bool optimal = false;               // error is proven the least, up to rounding
  std::string guarantee;              // in words: what is proven, and by what
  double seconds = 0;

  // (error - lower_bound) / error, 0 where the error is 0.
  double gap() const { return error > 0 ? (error - lower_bound) / error : 0.0; }
  // "optimal" or "within_gap".
  std::string status() const { return optimal ? "optimal" : "within_gap"; }
};

// Finds the plan, and with total_updates the allocation, with the least error.
//
// Updates per merge: exact, O(T^3 + N T^2); with max_merges M O(T^3 M^2).
//
// Total updates U:
//  1. exact, by the tree program with the updates as its resource, where that takes
//     no more than `effort` steps, O(T^3 U^2), with max_merges M O(T^3 U^2 M^2);
//  2. where a canonical strategy reaches the third of the bounds below, by that alone;
//  3. else with a certificate. Plans come from (a) the Lagrangian relaxation, which takes `price`
//     for each update in place of the limit, (b) the tree program with updates in units of q, the
//     exact program for 1, 2, … merges of equal shares, and the canonical strategies, and from the
//     best of them on from neighbour to neighbour; for each plan the updates are shared by
//     ShareUpdates. Lower bounds: (a) for any price >= 0 and any plan that spends U,
//         error >= sum_m omega(first_m) OwnCost_m(u_m) + price (sum_m u_m - U),
//     where omega(a) is the least product of gain factors on any way from the student down to a
//     node that begins at step a, and OwnCost is that of the convex curve below; the right side has
//     no gains left to nest, so its least value over all plans is a tree program, for each price;
//     (b) the tree program with units in which a merge that pays for k units gets (k+1) q - 1
//     updates, which is never less than an allocation that it rounds down has; (c) for N = 1, the
//     least own cost of the last merge with all updates. The largest of the three stands. A limit
//     on the merges is one more index of (a) and (b) where that keeps them within `effort`; else
//     (a) goes without it, which leaves its bound true, and (b) is left out.
//
// INVALID_ARGUMENT names the option; also where no plan keeps to the limits. RESOURCE_EXHAUSTED
// where a limit on the number of merges needs more than `effort` to be kept.
absl::StatusOr<MeasuredResult> SolveMeasured(const MeasuredModel& model,
                                             const MeasuredOptions& options);

// Does the plan keep to max_children and max_merges?
bool KeepsLimits(const Plan& plan, const MeasuredOptions& options);

// What the options give each merge of a plan to train: `updates`, or its share of the total.
// INVALID_ARGUMENT where the total is less than one for each.
absl::StatusOr<std::vector<std::int64_t>> UpdatesOf(const MeasuredModel& model, const Plan& plan,
                                                    const MeasuredOptions& options);

}  // namespace mergeplan
