#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "adapters/network/executor.h"
#include "planner/operators/canonical.h"
#include "tests/adapters/network/support.h"

namespace mergeplan::network::testing {

// Three modes in two dimensions, and everything that trains on them.
struct Setting {
  std::shared_ptr<const MixtureTrajectory> trajectory;
  Schedule schedule;
  Signature signature;
  std::shared_ptr<Teacher> teacher;
  std::shared_ptr<Inputs> inputs;
  std::unique_ptr<Module> student;

  NetworkSteps steps(Precision precision = Precision::kFull) const {
    return NetworkSteps::Create(signature, schedule, precision).value();
  }
};

inline Setting Make(int T, const std::string& name = "cosine", const std::string& dtype = "float32",
                    Prediction prediction = Prediction::kSample) {
  Setting s;
  s.schedule = LoadSchedule(name, T).value();
  s.trajectory = std::make_shared<const MixtureTrajectory>(
      MixtureTrajectory::Create(CircleMixture(3, 1.0, 0.3).value(), s.schedule).value());
  s.signature = SmallSignature(2, prediction, dtype);
  s.teacher = MakeMixtureTeacher(s.trajectory, {2}).value();
  s.inputs =
      MakeMixtureInputs(s.trajectory, {2}, dtype == "float64" ? at::kDouble : at::kFloat).value();
  s.student = SmallNetwork(s.signature, 16, 5);
  return s;
}

inline ExecutorOptions Options() {
  ExecutorOptions options;
  options.recipe = Recipe::Parse({{"optimizer", "adam"}}).value();
  options.lr = 0.01;
  options.iterations = 30;
  options.fit_updates = 60;
  options.batch = 64;
  options.held_out_rows = 128;
  options.seed = 9;
  return options;
}

inline std::unique_ptr<Executor> Create(const Setting& s, const Plan& plan,
                                        ExecutorOptions options) {
  auto executor =
      Executor::Create(s.teacher, *s.student, s.steps(), s.inputs, plan, std::move(options));
  EXPECT_TRUE(executor.ok()) << executor.status();
  return std::move(*executor);
}

inline Plan Canonical(Strategy strategy, int T, int blocks = 1) {
  return CanonicalPlan(strategy, T, blocks).value();
}

}  // namespace mergeplan::network::testing
