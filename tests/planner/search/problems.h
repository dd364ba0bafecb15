#pragma once

#include <random>
#include <string>

#include "planner/operators/model.h"
#include "tests/oracle/problem.h"

namespace mergeplan {

// One random planning problem in both forms: for the library and for the oracle.
struct RandomProblem {
  ModelSpec model;
  oracle::ProblemSpec oracle;
  int blocks = 1;
  std::string text;  // for messages: everything that is needed to make it again
};

struct RandomRange {
  int least_steps = 1, most_steps = 7;
  int most_dimensions = 4;
  int most_blocks = 3;
};

// Schedules: cosine, random variance preserving, flow matching in raw arrays. s in 0.05..20, lambda
// in 1e-4..50 and now and then exactly 1, weights now and then, all starts and references.
RandomProblem MakeRandomProblem(std::mt19937_64& random, const RandomRange& range);

// The same problem as the oracle states it (explicit arrays, as they are).
ModelSpec ToModelSpec(const oracle::ProblemSpec& problem);

}  // namespace mergeplan
