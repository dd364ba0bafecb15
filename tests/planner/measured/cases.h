#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "planner/measured/model.h"
#include "planner/measured/tables.h"

namespace mergeplan {

// Random measured numbers, complete for every range, in maps that the oracle reads: the tables that
// the fast code gets are written from them, and share nothing else with it.
struct RandomCase {
  int steps = 0;
  bool start_matters = false;
  std::vector<std::int64_t> updates;  // where the residuals have knots
  std::map<std::pair<int, int>, double> gain, floor;
  std::map<std::tuple<int, int, int>, double> distance;           // first, start, last
  std::map<std::tuple<int, int, std::int64_t>, double> residual;  // first, last, updates

  MeasuredTables Tables() const;
};

struct CaseKind {
  int steps = 4;
  bool start_matters = true;
  bool convex = true;          // residual curves
  bool zeros = false;          // some numbers are 0 and some are equal: ties
  bool product_gains = false;  // gain(i, m) = gain(i, k) gain(k+1, m)
};
RandomCase MakeCase(const CaseKind& kind, std::mt19937_64& random);

double Uniform(std::mt19937_64& random, double low, double high);
int Pick(std::mt19937_64& random, int low, int high);

}  // namespace mergeplan
