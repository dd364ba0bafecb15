#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/cases/network_files.h"
#include "adapters/network/trainer.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {

// What is timed: a merge of two teacher steps, [7, 8] of eight, by AdamW with an average.
inline TrainTask BenchTask() {
  TrainTask task;
  task.name = "merge [7, 8]";
  task.range = {7, 8};
  task.landing = 6;
  task.target = {{8, 6, -1, 0}};
  return task;
}

inline absl::StatusOr<TrainerOptions> BenchOptions(std::int64_t updates, std::int64_t batch) {
  TrainerOptions options;
  MP_ASSIGN_OR_RETURN(options.recipe, Recipe::Parse({{"optimizer", "adamw"}, {"ema", "0.99"}}));
  options.lr = 1e-5;
  options.updates = updates;
  options.batch = batch;
  return options;
}

// Unit noise for states at level 8: what is timed does not depend on their law.
inline absl::StatusOr<std::shared_ptr<Inputs>> BenchInputs(const NetworkFile& network,
                                                           const Schedule& schedule) {
  const std::vector<double> ones(static_cast<std::size_t>(network.signature.dimensions()), 1.0);
  MP_ASSIGN_OR_RETURN(std::shared_ptr<Inputs> inputs,
                      MakeGaussianInputs(ones, schedule, network.signature.shape, at::kFloat));
  return inputs;
}

}  // namespace mergeplan::network
