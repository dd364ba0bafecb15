#include "planner/search/families.h"

#include <utility>
#include <vector>

#include "planner/operators/canonical.h"

namespace mergeplan::search {
namespace {

std::vector<Range> Steps(int first, int last) {
  std::vector<Range> out;
  for (int t = first; t <= last; ++t) out.push_back(PlanBuilder::Step(t));
  return out;
}

}  // namespace

void SimplePlans(int teacher_steps, int blocks, bool nary, const std::function<bool(Plan)>& offer) {
  const auto add = [&offer](absl::StatusOr<Plan> plan) {
    return !plan.ok() || offer(*std::move(plan));
  };
  for (Strategy strategy : kStrategies) {
    if (!add(CanonicalPlan(strategy, teacher_steps, blocks))) return;
  }
  if (blocks > 1) {
    // One merged block among single steps: the plans with the fewest merges.
    for (int before = 0; before < blocks && blocks < teacher_steps; ++before) {
      PlanBuilder builder(teacher_steps);
      const int last = teacher_steps - (blocks - 1 - before);
      std::vector<Range> tops = Steps(1, before);
      tops.push_back(builder.Merge(Steps(before + 1, last)));
      for (const Range& step : Steps(last + 1, teacher_steps)) tops.push_back(step);
      if (!add(builder.Finish(tops))) return;
    }
    return;
  }
  constexpr int kBorders = 128;
  const int stride = (teacher_steps + kBorders - 1) / kBorders;
  for (int c = 2; c < teacher_steps; c += stride) {
    PlanBuilder boot(teacher_steps);
    Range rest = boot.Merge(Steps(c, teacher_steps));
    for (int t = c - 1; t >= 1; --t) rest = boot.Merge({PlanBuilder::Step(t), rest});
    if (!add(boot.Finish({rest}))) return;

    if (!nary) continue;
    PlanBuilder consistency(teacher_steps);
    Range head = PlanBuilder::Step(1);
    for (int t = 2; t <= c; ++t) head = consistency.Merge({head, PlanBuilder::Step(t)});
    std::vector<Range> children = Steps(c + 1, teacher_steps);
    children.insert(children.begin(), head);
    const Range top = consistency.Merge(std::move(children));
    if (!add(consistency.Finish({top}))) return;
  }
}

}  // namespace mergeplan::search
