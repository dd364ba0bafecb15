#pragma once

#include <vector>

#include "planner/plan/plan.h"

namespace mergeplan::search {

// Plans of simple shape that make good first incumbents: the four canonical strategies in N equal
// blocks and, for N = 1, for every border c
//   boot-over-vanilla        (1 (2 (... (c..T))))
//   consistency-in-vanilla   ((((1 2) 3) ... c) c+1..T)      (binary: pairs only at the borders, so
//   n-ary only)
// 2 T + 4 plans of O(T) each.
std::vector<Plan> SimplePlans(int teacher_steps, int blocks, bool nary);

}  // namespace mergeplan::search
