#include "planner/search/families.h"

#include <utility>

#include "planner/operators/canonical.h"

namespace mergeplan::search {
namespace {

void Add(absl::StatusOr<Plan> plan, std::vector<Plan>& out) {
  if (plan.ok()) out.push_back(*std::move(plan));
}

std::vector<Range> Steps(int first, int last) {
  std::vector<Range> out;
  for (int t = first; t <= last; ++t) out.push_back(PlanBuilder::Step(t));
  return out;
}

}  // namespace

std::vector<Plan> SimplePlans(int teacher_steps, int blocks, bool nary) {
  std::vector<Plan> out;
  for (Strategy strategy : kStrategies) Add(CanonicalPlan(strategy, teacher_steps, blocks), out);
  if (blocks > 1) return out;
  for (int c = 2; c < teacher_steps; ++c) {
    PlanBuilder boot(teacher_steps);
    Range rest = boot.Merge(Steps(c, teacher_steps));
    for (int t = c - 1; t >= 1; --t) rest = boot.Merge({PlanBuilder::Step(t), rest});
    Add(boot.Finish({rest}), out);

    if (!nary) continue;
    PlanBuilder consistency(teacher_steps);
    Range head = PlanBuilder::Step(1);
    for (int t = 2; t <= c; ++t) head = consistency.Merge({head, PlanBuilder::Step(t)});
    std::vector<Range> children = Steps(c + 1, teacher_steps);
    children.insert(children.begin(), head);
    const Range top = consistency.Merge(std::move(children));
    Add(consistency.Finish({top}), out);
  }
  return out;
}

}  // namespace mergeplan::search
