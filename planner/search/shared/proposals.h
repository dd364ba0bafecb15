#pragma once

#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "planner/plan/plan.h"
#include "planner/search/shared/tree.h"

namespace mergeplan::search {

// Plans worth an allocation: vanilla over a plan of few merges that drop steps when they are not
// trained. For N = 1: for every set of steps t < T in which some coordinate has A_t < 1 (or > 1),
// the plan whose root has all other steps as children, each together with the dropped steps on its
// clean side; and the same for the k cleanest steps, every k. O(min(d, most)) + T plans of O(T).
std::vector<Plan> DroppingPlans(const SharedProblem& problem, std::size_t most);

// All plans of N blocks; for T <= 6 that is a few hundred (the little Schroeder numbers).
std::vector<Plan> EveryPlan(int steps, int blocks);

// A plan with the shares it comes with (M numbers, sum 1).
struct SharedPlan {
  Plan plan;
  std::vector<double> shares;
};

// Plans that differ from `from` in one place: a merge dissolved into its parent; a run of two or
// more, but not all, children of a merge merged (in long merges only pairs and the runs at the
// ends); the border between two neighbouring children or blocks moved by one step. The shares are
// those of the merges that stay, with nothing for a new one. At most `most`, evenly taken.
std::vector<SharedPlan> LocalChanges(const SharedPlan& from, std::size_t most);

}  // namespace mergeplan::search
