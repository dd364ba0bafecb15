#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/cases/executor.h"

namespace mergeplan {

// checkpoint.npz of a run folder: the state of an executor, exactly, so that a run goes on bit by
// bit. `fingerprint` (64 hexadecimal digits) names everything that determines the run's numbers and
// is kept inside.
//
// Arrays: format, fingerprint, and per merge of the plan trained, value, curve, losses (initial,
// final), seconds, counts (updates, teacher calls); while merges are in training also active (their
// numbers), active_updates, active_seconds, active_parameters, active_curve, where the optimizer
// has them active_first, active_second, active_average (momentum or the moments; the EMA). The
// noise needs no more than the number of updates.

// Written beside and renamed: a run killed while it writes still has the checkpoint before.
absl::Status WriteCheckpoint(const ExecutorState& state, const std::string& fingerprint,
                             const std::string& path);

// NOT_FOUND where there is none yet; DATA_LOSS names the array for a damaged one;
// FAILED_PRECONDITION for one of another run or of another version's format.
absl::StatusOr<ExecutorState> ReadCheckpoint(const std::string& fingerprint,
                                             const std::string& path);

}  // namespace mergeplan
