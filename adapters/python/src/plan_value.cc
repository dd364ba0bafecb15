#include "adapters/python/src/plan_value.h"

#include "planner/answer/student_levels.h"

namespace mergeplan::python {
namespace {

MergeValue ToValue(const Plan& plan, const Merge& merge) {
  MergeValue out{merge.first, merge.last, merge.round, {}};
  out.children.reserve(merge.children.size());
  for (const int child : merge.children) {
    const Range range = plan.range(child);
    out.children.emplace_back(range.first, range.last);
  }
  return out;
}

}  // namespace

std::vector<MergeValue> PlanValue::Merges() const {
  std::vector<MergeValue> out;
  out.reserve(static_cast<size_t>(plan.size()));
  for (const Merge& merge : plan.merges()) out.push_back(ToValue(plan, merge));
  return out;
}

std::vector<std::vector<MergeValue>> PlanValue::Rounds() const {
  std::vector<std::vector<MergeValue>> out;
  const std::vector<std::vector<int>> rounds = plan.MergesByRound();
  for (size_t round = 1; round < rounds.size(); ++round) {
    std::vector<MergeValue>& row = out.emplace_back();
    for (const int k : rounds[round]) {
      row.push_back(ToValue(plan, plan.merges()[static_cast<size_t>(k)]));
    }
  }
  return out;
}

std::optional<Schedule> ScheduleOfDocument(const PlanDocument& document) {
  if (document.tables) return std::nullopt;
  absl::StatusOr<Schedule> named = ScheduleBehind(document);
  if (named.ok()) return *std::move(named);
  Schedule out;
  out.spec = out.name = document.schedule_spec;
  out.alpha = document.alpha;
  out.sigma = document.sigma;
  out.data_scale = document.data_scale;
  out.level_scale.assign(out.alpha.size(), 1.0);
  out.notes.push_back(
      "the levels of a plan file, in the coordinates in which plans are made: the schedule that it "
      "was made for is not known here, so there are no timesteps");
  return out;
}

}  // namespace mergeplan::python
