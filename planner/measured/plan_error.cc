#include "planner/measured/plan_error.h"

#include <cmath>
#include <utility>

namespace mergeplan {

double ErrorOf(Combine combine, double contributions) {
  return combine == Combine::kSum ? contributions : std::sqrt(contributions);
}

int StartOf(const Plan& plan, const Merge& merge) {
  return plan.range(merge.children.back()).first;
}

PlanError::PlanError(const MeasuredModel& model, const Plan& plan,
                     absl::Span<const std::int64_t> updates, Combine combine)
    : steps_(plan.teacher_steps()), combine_(combine) {
  merges_.reserve(plan.size());
  for (int k = 0; k < plan.size(); ++k) {
    const Merge& merge = plan.merges()[k];
    Node node;
    node.left = model.Residual(merge.first, merge.last, updates[k]);
    node.distance = model.Distance(merge.first, StartOf(plan, merge), merge.last);
    node.floor = model.Floor(merge.first, merge.last);
    for (const int child : merge.children) {
      if (plan.is_step(child)) continue;
      node.children.push_back({child, model.Gain(merge.first, plan.range(child).first - 1)});
    }
    merges_.push_back(std::move(node));
  }
  for (const int block : plan.blocks()) {
    if (plan.is_step(block)) continue;
    blocks_.push_back({block, model.Gain(1, plan.range(block).first - 1)});
  }
}

double PlanError::At(absl::Span<const double> scenario) const {
  std::vector<double> of(merges_.size());
  const auto sum_of = [&](const std::vector<Child>& children) {
    double sum = 0;
    for (const Child& child : children) {
      const double factor = GainFactor(combine_, child.gain.At(scenario));
      // An error beyond all numbers is still lost where nothing of it passes.
      if (factor > 0) sum += factor * of[child.node - steps_];
    }
    return sum;
  };
  for (size_t k = 0; k < merges_.size(); ++k) {  // children stand before parents
    const Node& node = merges_[k];
    of[k] = sum_of(node.children) + OwnCost(combine_, node.left.At(scenario),
                                            node.distance.At(scenario), node.floor.At(scenario));
  }
  return ErrorOf(combine_, sum_of(blocks_));
}

ErrorRange PlanError::Range(const MeasuredModel& model) const {
  return {At(model.values()), At(model.lows()), At(model.highs())};
}

}  // namespace mergeplan
