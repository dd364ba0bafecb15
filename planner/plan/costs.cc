#include "planner/plan/costs.h"

namespace mergeplan {

PlanCosts CostsOf(const Plan& plan) {
  PlanCosts out;
  out.rounds = plan.rounds();
  for (const Merge& merge : plan.merges()) {
    for (const int child : merge.children) {
      ++(plan.is_step(child) ? out.teacher_calls : out.student_calls);
    }
  }
  return out;
}

}  // namespace mergeplan
