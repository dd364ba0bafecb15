#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "planner/measured/model.h"
#include "planner/measured/tables.h"
#include "planner/plan/plan.h"

namespace mergeplan {

// What a merge adds by itself, in the unit in which contributions add up: errors for `sum`, their
// squares for `rms`.
inline double OwnCost(Combine combine, double left, double distance, double floor) {
  const double training = left * distance;
  return combine == Combine::kSum ? training + floor : training * training + floor * floor;
}
// The factor of a child's contribution.
inline double GainFactor(Combine combine, double gain) {
  return combine == Combine::kSum ? gain : gain * gain;
}
// The error that a sum of contributions stands for.
double ErrorOf(Combine combine, double contributions);

// The first step of a merge's noisiest child.
int StartOf(const Plan& plan, const Merge& merge);

// An error with the interval that the measured intervals leave it.
struct ErrorRange {
  double value = 0;
  double low = 0;
  double high = 0;
};

// The error of one plan's student as a function of the measured numbers. Made once, it is cheap to
// evaluate for many scenarios.
class PlanError {
 public:
  // `updates`: of every merge, in the order of plan.merges().
  PlanError(const MeasuredModel& model, const Plan& plan, absl::Span<const std::int64_t> updates,
            Combine combine);

  // O(T + merges).
  double At(absl::Span<const double> scenario) const;
  // With all numbers at their values, low ends and high ends. The error rises with every number, so
  // the interval is exactly the set of errors that numbers within their intervals can give.
  ErrorRange Range(const MeasuredModel& model) const;

 private:
  struct Child {
    int node;
    Form gain;
  };
  struct Node {
    Form left, distance, floor;
    std::vector<Child> children;  // merges only: single steps add nothing
  };

  int steps_;
  Combine combine_;
  std::vector<Node> merges_;
  std::vector<Child> blocks_;
};

}  // namespace mergeplan
