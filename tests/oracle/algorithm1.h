#pragma once

#include <cstddef>
#include <vector>

#include "planner/plan/plan.h"
#include "tests/oracle/problem.h"

namespace mergeplan::oracle {

struct Algorithm1Result {
  Plan plan;
  Wide objective = 0;
  std::vector<Wide> value;
  std::size_t candidates = 0;  // how often InsertAndPrune was called
  std::size_t frontier = 0;    // elements kept for 1..T
};

// Algorithm 1 of the paper as it stands (alg:pareto_dp_merge): a whole Pareto frontier for every
// range of steps, from the direct merge of all steps and from every split in two. Dominance is
// eq:preference. InsertAndPrune is the paper's with two repairs: a new element that dominates
// others is added too (the text only says that the others go), and an element equal to one that is
// there is dropped. One block, binary space. Exponential in the worst case.
//
// It is the paper's algorithm, so it is right only where the preference is: start `child` and
// reference `surrogate` on a variance preserving schedule.
Algorithm1Result Algorithm1(const Problem& problem);

}  // namespace mergeplan::oracle
