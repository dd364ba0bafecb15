#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "planner/operators/model.h"
#include "planner/schedule/schedule.h"

namespace mergeplan {

inline Model ModelFor(const std::string& schedule, int steps, std::vector<double> variances,
                      Budget budget = Budget::Flow(1.6),
                      Reference reference = Reference::kSurrogate) {
  ModelSpec spec;
  const absl::StatusOr<Schedule> loaded = LoadSchedule(schedule, steps);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  spec.schedule = *loaded;
  spec.variances = std::move(variances);
  spec.budget = budget;
  spec.reference = reference;
  absl::StatusOr<Model> model = Model::Create(std::move(spec));
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

}  // namespace mergeplan
