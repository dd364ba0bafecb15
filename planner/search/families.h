#pragma once

#include <functional>

#include "planner/plan/plan.h"

namespace mergeplan::search {

// Plans of simple shape that make good first incumbents: the four canonical strategies in N equal
// blocks and, for N = 1, for every border c
//   boot-over-vanilla        (1 (2 (... (c..T))))
//   consistency-in-vanilla   ((((1 2) 3) ... c) c+1..T)      (binary: pairs only at the borders, so
//   n-ary only)
// and for N > 1 one block of all steps at once among single ones.
// Borders are evenly spread over at most 128 levels, so that many steps cost no more than O(T)
// plans of O(T) each. `offer` gets one plan after the other and returns false to end.
void SimplePlans(int teacher_steps, int blocks, bool nary, const std::function<bool(Plan)>& offer);

}  // namespace mergeplan::search
