#pragma once

#include <vector>

#include "planner/plan/plan.h"

namespace mergeplan {

// Plans like the given one, for a local search: one border between two blocks or one start of a
// merge moved by 1, 2, 4, … steps, one merge left out, or one put in half-way. Only for plans in
// which every merge has a merge for its noisiest child at most, as the best ones of the measured
// model are where any number of children is allowed (README.md); others have no neighbours.
// O(merges T log T).
std::vector<Plan> NeighboursOf(const Plan& plan);

}  // namespace mergeplan
