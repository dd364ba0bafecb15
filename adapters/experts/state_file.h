#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/experts/executor.h"

namespace mergeplan::experts {

// The state of an executor as one .npz, exactly, so that a run goes on bit by bit. `fingerprint`
// names everything that determines the run's numbers and is kept inside.
//
// Arrays. Records are trial by trial, the fit and then the merges: R = trials (1 + merges) of them.
//   format, fingerprint; shape: trials, merges
//   trained (R); losses (R x 2: initial, final); errors (R x 6: mean, standard error and rows, of
//   `own` and of `teacher`); counts (R x 2: updates, teacher calls); seconds (R)
//   curve_ends (R), curve: the curves one after the other; held (R), parameters (held x n)
// and while students are in training, A of them: active (A x 3: trial, merge or -1, updates),
//   active_seconds (A), active_curve_ends, active_curve, active_parameters (A x n), and under Adam
//   active_moments (A x 2 x n).

// Written beside and renamed: a run killed while it writes still has the state before.
absl::Status WriteState(const ExecutorState& state, const std::string& fingerprint,
                        const std::string& path);

// NOT_FOUND where there is none yet; DATA_LOSS names the array for a damaged one;
// FAILED_PRECONDITION for one of another run or format. Executor::Restore checks that it fits.
absl::StatusOr<ExecutorState> ReadState(const std::string& fingerprint, const std::string& path);

}  // namespace mergeplan::experts
