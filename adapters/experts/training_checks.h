#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "adapters/experts/trainer.h"

// What all trainers refuse, in the same words. For this folder only.
namespace mergeplan::experts {

// INVALID_ARGUMENT names the size, option or task that is out of range.
absl::Status CheckTraining(const std::vector<TrainTask>& tasks, const Inputs& inputs,
                           const TrainerOptions& options);

// DATA_LOSS where a saved state does not fit a task.
absl::Status CheckState(const TrainTask& task, const TaskState& state,
                        const TrainerOptions& options);

// FAILED_PRECONDITION: the loss of the update after `made` others, or its gradient, is not finite.
absl::Status NotFinite(const TrainTask& task, double loss, std::int64_t made,
                       const TrainerOptions& options);

}  // namespace mergeplan::experts
