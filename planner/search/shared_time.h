#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/operators/model.h"
#include "planner/plan/plan.h"
#include "planner/search/search.h"

namespace mergeplan {

// One total of training for all merges of a plan, in place of the same training for each.
//
// The total is a time S where the model's budget is gradient flow, a number K of updates where it
// is SGD; the budget's own time or iterations are not used, its learning rate, batch and feature
// norm are. Merge m gets the share x_m >= 0 of it, sum x_m = 1, and shrinks by gamma_m = exp(x_m S
// (-2 n_j)) or (1 - g_j)^(x_m K) with j its noisy level (prop:student_gradient_flow). A merge with
// no share is not trained: its student stays where it starts. References, starts, weights and
// blocks are those of the model and the options.

// How the merges of a given plan share a total.
struct SharedAllocation {
  std::vector<double> shares;         // M numbers >= 0 of sum 1, in the order of plan.merges()
  std::vector<std::int64_t> updates;  // SGD: M integers >= 0 of sum K; shares are updates / K
  double objective = 0;               // sum_k w_k (tau_k - V_k)^2, native units
  // Real shares: max over allocations y of grad·(x - y), in units of the objective; 0 exactly where
  // x meets the conditions of Karush, Kuhn and Tucker. With SGD, of the shares before rounding.
  double stationarity = 0;
  // No allocation of this plan is better than objective - stationarity (before rounding, with SGD):
  // proven where the plan's blocks are vanilla and vanilla is extreme in every dimension
  // (planner/search/shared/borders.h). Elsewhere the objective is not convex in general, and the
  // allocation is the best of descents from several starts.
  bool convex = false;
  // SGD: no move of one update between two merges lowers the objective.
  bool exchanged = false;
};

// V of the whole student (d values) when merge m gets the training amounts[m] >= 0: time, or
// updates. O(M d). INVALID_ARGUMENT for amounts that are not M finite numbers >= 0 or a plan of
// another number of steps; FAILED_PRECONDITION for a model of tables.
absl::StatusOr<std::vector<double>> SharedTimeValue(const Model& model, const Plan& plan,
                                                    absl::Span<const double> amounts);

// The best allocation found for the plan. Of the options: threads, interrupted and the time limit.
// O(M d) for each of some hundred evaluations. Errors as SolveSharedTime; the plan must have the
// model's number of steps.
absl::StatusOr<SharedAllocation> AllocateSharedTime(const Model& model, const Plan& plan,
                                                    double total_time_or_updates,
                                                    const SearchOptions& options);

enum class SharedTimeStatus {
  kOptimal,      // nothing is better, up to the rounding tolerance
  kWithinGap,    // proven within the gap that was asked for
  kBestKnown,    // all that is tried was tried, and the gap is what it is
  kTimeLimit,    // stopped early
  kInterrupted,  // the same, by options.interrupted
};
// "optimal", "within_gap", "best_known", "time_limit", "interrupted".
std::string_view ToString(SharedTimeStatus status);

struct SharedTimeResult {
  Plan plan;
  SharedAllocation allocation;
  double total = 0;
  double objective = 0;
  // No plan of N blocks has an objective below it, with whatever allocation of the total or of less
  // than the total. Never negative; the rounding tolerance is subtracted.
  double lower_bound = 0;
  double tolerance = 0;
  // For comparison. Vanilla: one merge with the whole total, for N > 1 equal blocks of vanilla with
  // their best allocation. Equal shares: the plan returned, with the same for every merge.
  double vanilla_objective = 0, equal_shares_objective = 0;
  int untrained = 0;  // merges of the plan with (almost) no share: less than 1e-9, or no update
  int plans = 0;      // how many plans were given an allocation
  SharedTimeStatus status = SharedTimeStatus::kBestKnown;
  std::string guarantee;  // in words: what is proven, and by what
  double seconds = 0;

  // (objective - lower_bound) / objective, 0 where the objective is 0.
  double gap() const { return objective > 0 ? (objective - lower_bound) / objective : 0.0; }
};

// Looks for the plan and the allocation with the least objective for a total of training, with a
// certificate. Always returns a plan. With one block vanilla with the whole total is proven best
// for many models (planner/search/shared/ends.h) and then returned at once. Of the options all but
// `groups` are respected; limits and space restrict the plans, the bound is then that of all plans.
// Deterministic unless time runs short.
//
// INVALID_ARGUMENT: the total is not positive and finite, or with SGD not a whole number; student
// steps, gap, time limit or limits out of range; no plan within the limits was found.
// FAILED_PRECONDITION: a model of tables, whose shrinkage does not say how it depends on training.
absl::StatusOr<SharedTimeResult> SolveSharedTime(const Model& model, double total_time_or_updates,
                                                 const SearchOptions& options);

}  // namespace mergeplan
