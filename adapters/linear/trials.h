#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/linear/trainer.h"
#include "planner/operators/model.h"
#include "planner/plan/plan.h"

namespace mergeplan {

// Many trials of one plan that differ in their seeds, trained together round by round: all merges
// of a round of all trials are one training. For tables over trials and for tests of laws; a run
// that can be stopped and resumed is the Executor's.
//
// Trial i's values are bit for bit those of a run of its own with seeds[i]. The options' rate,
// feature norm, updates and batch are taken from the model's budget, which must be SGD:
// INVALID_ARGUMENT; errors of the trainer. Gives the value of the whole student, trials x d.
absl::StatusOr<std::vector<double>> TrainTrials(const Model& model, const Plan& plan,
                                                const std::vector<std::uint64_t>& seeds,
                                                TrainerOptions options);

// These options, with the budget's numbers in them.
TrainerOptions WithBudget(TrainerOptions options, const Budget& budget);

}  // namespace mergeplan
