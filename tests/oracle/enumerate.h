#pragma once

#include <cstddef>
#include <vector>

#include "planner/operators/terms.h"
#include "planner/plan/plan.h"
#include "tests/oracle/problem.h"

namespace mergeplan::oracle {

// Every plan with exactly `blocks` blocks over the steps 1..T of the space, each once. N-ary, one
// block: the little Schroeder numbers 1, 1, 3, 11, 45, 197, 903, 4279 for T = 1..8; binary: 1, 1,
// 3, 8, 23, 72, 239, 825. Meant for T <= 8. The list is kept for later calls (not thread safe).
const std::vector<Plan>& AllPlans(int teacher_steps, int blocks, Space space);

struct Solution {
  Plan plan;  // the first of the best in the order of AllPlans
  Wide objective = 0;
  std::vector<Wide> value;  // of `plan`, d numbers
  double tolerance = 0;     // of `plan`
  std::size_t plans = 0;    // how many were tried
  std::size_t ties = 0;     // how many are at most (1 + 1e-12) times the best, the best included
  bool has_runner_up = false;
  Wide runner_up = 0;  // the best objective outside the ties

  bool unique() const { return ties == 1; }
};

// The best plan, by trying all of them.
Solution Solve(const Problem& problem, int blocks, Space space);

// Least and largest value that any plan of the space has, per dimension.
struct ValueRange {
  std::vector<Wide> least, largest;
};
ValueRange RangeOfValues(const Problem& problem, int blocks, Space space);

}  // namespace mergeplan::oracle
