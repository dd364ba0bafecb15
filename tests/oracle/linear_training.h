#pragma once

#include <vector>

#include "adapters/linear/trainer.h"

namespace mergeplan::oracle {

// Training of one linear student as a textbook has it: every sample's error and gradient, all
// parameters and all moments stored, one loop inside the other. What the trainers must equal up to
// rounding, for draws `samples` and `fixed`.
struct PlainTraining {
  std::vector<double> value;  // d: the operator that is frozen
  std::vector<double> curve;  // the loss of every update's batches
};
PlainTraining TrainPlainly(const MergeTask& task, const TrainerOptions& options);

}  // namespace mergeplan::oracle
