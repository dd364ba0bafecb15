#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/operators/terms.h"
#include "planner/plan/plan.h"
#include "tests/oracle/problem.h"

namespace mergeplan::oracle {

// One solved problem of reference/plans/small_cases.json.
struct SmallCase {
  std::string id, note;
  ProblemSpec problem;  // start `child`
  int blocks = 1;
  std::vector<double> tau;
  std::map<std::string, double> canonical;  // objective of the four strategies, one block

  struct Optimum {
    double objective = 0;
    Plan plan;
    std::vector<double> value;
    bool unique = false;
    int ties = 0;
    bool has_runner_up = false;
    double runner_up = 0;
    int plans = 0;
    double tolerance = 0;
  };
  Optimum nary, binary;

  int steps() const { return static_cast<int>(problem.alpha.size()) - 1; }
  const Optimum& optimum(Space space) const { return space == Space::kNary ? nary : binary; }
};

// Where the reference data lies: $MERGEPLAN_SHARED, else $MERGEPLAN_SOURCE_DIR/../shared.
std::string SharedFolder();

// The cases of $MERGEPLAN_SHARED/reference/plans/small_cases.json; empty where the file is absent,
// and then `*missing` names it. A file that is there but cannot be read aborts.
std::vector<SmallCase> LoadSmallCases(std::string* missing);

}  // namespace mergeplan::oracle
