#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/operators/terms.h"
#include "planner/plan/io/document.h"
#include "planner/plan/plan.h"
#include "planner/schedule/schedule.h"

namespace mergeplan::python {

// One merge as Python sees it: ranges of steps, no node numbers.
struct MergeValue {
  int first = 0, last = 0, round = 0;
  std::vector<std::pair<int, int>> children;

  bool operator==(const MergeValue&) const = default;
};

// A plan as Python sees it: the tree, and what of its question and certificate is known. A
// canonical strategy may be asked for without data: then there is no document.
struct PlanValue {
  Plan plan;
  std::optional<PlanDocument> document;
  std::optional<Schedule> schedule;  // with timesteps and scales where it was given, not read
  Init init = Init::kChildJump;

  std::vector<MergeValue> Merges() const;
  // By round, the first round first.
  std::vector<std::vector<MergeValue>> Rounds() const;
};

// Of a plan that was read: the schedule that its arrays are, and, where the name it was made for
// can be loaded and gives the same arrays, with that schedule's timesteps and scales.
std::optional<Schedule> ScheduleOfDocument(const PlanDocument& document);

}  // namespace mergeplan::python
