#pragma once

#include <functional>
#include <vector>

#include "planner/operators/model.h"
#include "planner/plan/plan.h"

namespace mergeplan::search {

// Plans of simple shape that make good first incumbents: the four canonical strategies in N equal
// blocks and, for N = 1, the mixed plans for every border c
//   boot-over-vanilla        (1 (2 (... (c..T))))
//   consistency-in-vanilla   ((((1 2) 3) ... c) c+1..T)      (binary: pairs only at the borders, so
//   n-ary only)
// and for N > 1 one block of all steps at once among single ones.
// Borders are evenly spread over at most 128 levels, so that many steps cost no more than O(T)
// plans of O(T) each. `offer` gets one plan after the other and returns false to end.
void SimplePlans(int teacher_steps, int blocks, bool nary, const std::function<bool(Plan)>& offer);

// The four canonical strategies alone.
void CanonicalPlans(int teacher_steps, int blocks, const std::function<bool(Plan)>& offer);

// One of the mixed plans of one block. It has `border` merges in as many rounds.
struct MixedPlan {
  bool boot;         // over vanilla; otherwise consistency in it
  int border;        // c
  double objective;  // up to rounding
};

// All of them, best first, without a plan being built: O(T d) per border of boot, O(d) per border
// of consistency. Cut short where `stop` (may be empty) says true.
std::vector<MixedPlan> RateMixedPlans(const Model& model, bool nary,
                                      const std::function<bool()>& stop);
absl::StatusOr<Plan> Build(const MixedPlan& mixed, int teacher_steps);

}  // namespace mergeplan::search
