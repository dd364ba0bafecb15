#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "adapters/calibrate/design.h"
#include "adapters/calibrate/measurements.h"
#include "adapters/calibrate/pilots.h"

namespace mergeplan::calibrate {

// What needs no training.

// Distances of all starts of all merges that end at one of the design's levels. A start from a
// trained child needs no trained child: what a perfect one outputs is the teacher's own state at
// level a-1, and the x0 estimate that this implies leads to the state at level i-1
//
//   p z_{a-1} + q z_j,  p = D(i-1,j) / D(a-1,j),  q = -D(i-1,a-1) / D(a-1,j)
//
// (`child-jump`; `child` starts at z_{a-1} itself, `teacher` and `jump` where the student's own
// network lands). One walk of the teacher per level gives all of them. Also the variances of the
// teacher's samples. Adds single teacher steps to `calls`; CANCELLED when the options' stop said
// so.
absl::Status MeasureDistances(Pilots& pilots, const Design& design, Measurements* out);

// Finite differences along errors that merges begin with: half of the start's error of the merges
// level+1..last, for a few `last`, carried down by the teacher's steps.
absl::Status MeasureGains(Pilots& pilots, const Design& design, Measurements* out);
// The same along the error that a pilot has left, `network` being what it has trained.
absl::Status MeasureTrainedGain(Pilots& pilots, Range range, network::Module& network,
                                Measurements* out);

}  // namespace mergeplan::calibrate
