#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "adapters/experts/executor.h"
#include "planner/mixture/trajectory.h"
#include "planner/plan/plan.h"
#include "planner/schedule/schedule.h"

namespace mergeplan::experts {

// Three modes near the origin: students learn something of them in few updates.
inline GaussianMixture SmallMixture() { return CircleMixture(3, 1.5, 0.4).value(); }

inline std::shared_ptr<const MixtureTrajectory> SmallTeacher(int steps) {
  return std::make_shared<const MixtureTrajectory>(
      MixtureTrajectory::Create(SmallMixture(), CosineSchedule(steps)).value());
}

inline NetworkShape SmallShape() { return {2, 3, 10, 6}; }

inline ExecutorOptions SmallOptions() {
  ExecutorOptions options;
  options.shape = SmallShape();
  options.fit_updates = 30;
  options.iterations = 20;
  options.batch = 300;
  options.held_out_rows = 200;
  options.optimizer.lr = 0.01;
  return options;
}

inline void ExpectSameTask(const TaskState& a, const TaskState& b) {
  EXPECT_EQ(a.updates, b.updates);
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(a.first_moment, b.first_moment);
  EXPECT_EQ(a.second_moment, b.second_moment);
  EXPECT_EQ(a.curve, b.curve);
}

// Everything that training decides, and nothing that takes time.
inline void ExpectSameStudent(const StudentRecord& a, const StudentRecord& b) {
  EXPECT_EQ(a.trained, b.trained);
  EXPECT_EQ(a.initial_loss, b.initial_loss);
  EXPECT_EQ(a.final_loss, b.final_loss);
  EXPECT_EQ(a.updates, b.updates);
  EXPECT_EQ(a.teacher_calls, b.teacher_calls);
  EXPECT_EQ(a.own, b.own);
  EXPECT_EQ(a.teacher, b.teacher);
  EXPECT_EQ(a.curve, b.curve);
  ASSERT_EQ(a.parameters == nullptr, b.parameters == nullptr);
  if (a.parameters != nullptr) {
    EXPECT_EQ(*a.parameters, *b.parameters);
  }
}
inline void ExpectSameTrial(const TrialRecord& a, const TrialRecord& b) {
  ExpectSameStudent(a.fit, b.fit);
  ASSERT_EQ(a.merges.size(), b.merges.size());
  for (std::size_t m = 0; m < a.merges.size(); ++m) {
    SCOPED_TRACE(::testing::Message() << "merge " << m);
    ExpectSameStudent(a.merges[m], b.merges[m]);
  }
}

}  // namespace mergeplan::experts
