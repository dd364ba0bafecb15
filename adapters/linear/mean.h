#pragma once

#include <vector>

#include "absl/types/span.h"
#include "adapters/linear/trainer.h"
#include "planner/operators/model.h"
#include "planner/plan/plan.h"

namespace mergeplan {

// What a training ends at in the mean over its noise, for recipes that have a prediction: a linear
// function of start and target,
//   E a = start c0 + target P.
// Every update is linear in where it begins and in its batch sums, which are independent of what
// was before, so the mean obeys the updates with the mean sums B n (of `fixed` draws, which use one
// batch again and again, this is the value at the mean batch). With SGD alone start is the product
// of 1 - 2 lr_u F n over the updates.
struct MeanOfTraining {
  std::vector<double> start, target;  // one per input variance
};
// `n`: input variances. O(updates n).
MeanOfTraining MeanOf(const TrainerOptions& options, absl::Span<const double> n);

// Values of all nodes of a plan by these means, node-major like Model::NodeValues, which it is for
// the plain recipe. NaN for the merges where the recipe has no prediction. The model has a
// schedule.
std::vector<double> PredictedNodeValues(const Model& model, const Plan& plan,
                                        const TrainerOptions& options);

}  // namespace mergeplan
