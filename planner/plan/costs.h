#pragma once

#include "planner/plan/plan.h"

namespace mergeplan {

// What executing a plan takes, whatever the model: counts, per training sample where they are
// calls. Every child of a merge is called once to make the target that the merge is trained
// against.
struct PlanCosts {
  int rounds = 0;         // of merges that can be trained together, one after the other
  int teacher_calls = 0;  // children that are single steps: a merge of the steps i..j has j-i+1
  int student_calls = 0;  // children that are merges themselves

  friend bool operator==(const PlanCosts&, const PlanCosts&) = default;
};

// O(T).
PlanCosts CostsOf(const Plan& plan);

}  // namespace mergeplan
