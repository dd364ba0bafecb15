#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/plan/io/node.h"
#include "planner/plan/plan.h"

namespace mergeplan::plan_io {

// The plan that the keys `merges` and `blocks` of a file give; without `blocks` one block. `round`
// is optional and, where it stands, must be right. Errors name file, line and merge.
absl::StatusOr<Plan> ReadMerges(const NodeReader& read, const Node& root, int teacher_steps);

// Does `tree` of a JSON file say the same as the plan?
absl::Status CheckTree(const NodeReader& read, const Node& tree, const Plan& plan);

}  // namespace mergeplan::plan_io
