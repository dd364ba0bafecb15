#pragma once

#include "planner/base/host_device.h"

// What one number of one row of a mixture step goes through: the functions that the processor's
// loops (kernels.cc) are made of and that a device's kernels can include. Compiled without
// contraction on both sides (-ffp-contract=off, -fmad=false) they give the same digits.
namespace mergeplan::mixture {

// What a component adds to the step at a coordinate, `local` being the deviation from its centre.
MERGEPLAN_HOST_DEVICE double Expert(double target, double gain, double local) {
  return target + gain * local;
}
// The same with a low-rank part: `pulled` is what that part explains of the deviation `local`.
MERGEPLAN_HOST_DEVICE double LowRankExpert(double target, double gain, double cross, double alpha2,
                                           double local, double pulled) {
  return target + (gain * (local - alpha2 * pulled) + cross * pulled);
}

// A coordinate's share in a component's squared distance.
MERGEPLAN_HOST_DEVICE double Distance(double inverse_variance, double local) {
  return inverse_variance * (local * local);
}

// What a component adds to the derivative of the step: its own map of the direction, and its
// weight's change times where it leads. `change` is how much faster than the mean of all components
// the squared distance grows along the direction (half of its derivative).
MERGEPLAN_HOST_DEVICE double Change(double weight, double mapped, double change, double expert) {
  return weight * (mapped - change * expert);
}

}  // namespace mergeplan::mixture
