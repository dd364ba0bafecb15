#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "adapters/calibrate/measurements.h"
#include "planner/operators/model.h"
#include "planner/schedule/schedule.h"

namespace mergeplan::calibrate {

// The linear theory of the same network: students that are one number per dimension, of data with
// these variances. It has one number that nobody knows of a network, the time s that an update is
// worth; the one that predicts the fitted merges best is taken, so that it is given its best
// chance.
class LinearModel {
 public:
  struct Data {
    Schedule schedule;
    std::vector<double> variances;  // native; one for all dimensions where it has one number
    Init init = Init::kChildJump;
    // How many dimensions one variance stands for.
    double copies = 1;
  };

  // Fits s to the errors that fitted pilots of single steps have at their end. FAILED_PRECONDITION
  // where there is none. O(pilots T d) per trial of s, about 60 of them.
  static absl::StatusOr<LinearModel> Fit(Data data, const Measurements& m);

  double train_time() const { return time_; }
  const Model& model() const { return model_; }
  // Root mean square over z_last of what a merge is off the teacher's steps, native.
  absl::StatusOr<double> ErrorOf(const Pilot& pilot) const;
  // Of a whole plan's student, over z_T.
  double ErrorOf(const Plan& plan) const;

 private:
  LinearModel(Data data, double time, Model model)
      : data_(std::move(data)), time_(time), model_(std::move(model)) {}
  static absl::StatusOr<LinearModel> At(const Data& data, double time);

  Data data_;
  double time_ = 0;
  Model model_;
};

// The plan that holds one pilot and single steps.
absl::StatusOr<Plan> PlanOf(const Pilot& pilot, int teacher_steps);

}  // namespace mergeplan::calibrate
