#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "adapters/linear/trainer.h"
#include "planner/operators/model.h"
#include "planner/schedule/schedule.h"

namespace mergeplan::testing {

// A merge of d dimensions with random numbers.
inline MergeTask RandomTask(Range range, int d, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0.2, 1.5);
  MergeTask task;
  task.range = range;
  task.seed = 5;
  task.time = range.last / 16.0;
  for (int k = 0; k < d; ++k) {
    task.start.push_back(uniform(random));
    task.target.push_back(uniform(random));
    task.scale.push_back(uniform(random));
  }
  return task;
}

// A merge that starts at 1, shall become 0, and is fed with variance n: what is learnt is the
// shrinkage itself.
inline MergeTask ShrinkageTask(Range range, int d, double n) {
  MergeTask task;
  task.range = range;
  task.start.assign(d, 1.0);
  task.target.assign(d, 0.0);
  task.scale.assign(d, std::sqrt(n));
  return task;
}

// Runs a trainer to its end and gives the state. Fails the test on an error.
inline TrainerState RunToEnd(absl::StatusOr<std::unique_ptr<Trainer>> trainer) {
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  if (!trainer.ok()) return {};
  while (!(*trainer)->done()) {
    const absl::Status status = (*trainer)->Advance();
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok()) break;
  }
  return (*trainer)->Save();
}
inline TrainerState TrainToEnd(std::vector<MergeTask> tasks, const TrainerOptions& options) {
  return RunToEnd(MakeLinearTrainer(std::move(tasks), options));
}

// A cosine problem.
inline Model MakeModel(int teacher_steps, std::vector<double> variances, Budget budget,
                       Init init = Init::kChild, Reference reference = Reference::kSurrogate) {
  ModelSpec spec;
  spec.schedule = CosineSchedule(teacher_steps);
  spec.variances = std::move(variances);
  spec.budget = budget;
  spec.init = init;
  spec.reference = reference;
  absl::StatusOr<Model> model = Model::Create(std::move(spec));
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

}  // namespace mergeplan::testing
