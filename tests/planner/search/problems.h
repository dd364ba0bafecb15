#pragma once

#include <random>
#include <string>

#include "planner/operators/model.h"
#include "planner/search/search.h"
#include "tests/oracle/problem.h"

namespace mergeplan {

// Uniformly distributed numbers, of integers both ends included.
double Uniform(std::mt19937_64& random, double low, double high);
int Integer(std::mt19937_64& random, int low, int high);

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

// Holds a result against the best of all plans: `optimum` is its objective, `found` that of the
// result's plan, both exact; `tolerance` the rounding of either. What the certificate says is
// right, and with gap 0 the plan is proven optimal.
void ExpectCertificateHolds(const SearchResult& result, int blocks, double gap, double optimum,
                            double found, double tolerance);

// The same problem as the oracle states it (explicit arrays, as they are).
ModelSpec ToModelSpec(const oracle::ProblemSpec& problem);

}  // namespace mergeplan
