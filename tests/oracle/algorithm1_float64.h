#pragma once

#include <cstddef>

#include "planner/operators/model.h"

namespace mergeplan::oracle {

struct PlainAlgorithm1Result {
  double objective = 0;
  std::size_t candidates = 0;  // how often InsertAndPrune was called
};

// Algorithm 1 of the paper as it stands (alg:pareto_dp_merge) in float64 and in the plainest code
// that is not slow on purpose: whole Pareto frontiers, d = 2, start `child`, reference `surrogate`,
// a variance preserving schedule. What users would run today, for ratios. A test
// compares it with Algorithm1 in quadruple precision.
PlainAlgorithm1Result PlainAlgorithm1(const Model& model);

}  // namespace mergeplan::oracle
