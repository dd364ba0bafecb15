#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "adapters/linear/trainer.h"
#include "planner/operators/model.h"
#include "planner/plan/plan.h"

namespace mergeplan {

// Start, target and input of a merge (an index into plan.merges()), from what its children are
// worth: `value(node)` gives their d values. The seed is left at 0. The model has a schedule.
MergeTask MakeMergeTask(const Model& model, const Plan& plan, int merge,
                        absl::FunctionRef<std::vector<double>(int node)> value);

}  // namespace mergeplan
