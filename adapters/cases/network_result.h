#pragma once

#include <string>

#include "absl/status/status.h"
#include "adapters/cases/network_job.h"
#include "adapters/network/executor.h"
#include "planner/runs/result_file.h"

namespace mergeplan {

// Writes the student, result.npz and result.toml of a finished run with network students.
//
// student/FIRST-LAST: the network of every block that was trained, in the format of the network
// that the run began with. The jump from level LAST lands at the block's `block_landing`.
//
// result.toml as for a mixture's students (mixture_result.h). result.npz, N blocks, M merges:
// block_range [N,2], block_landing [N] (-1: a single step of the teacher itself), block_level [N]
// and block_error [N,2]: E |student - teacher|^2 from the same noise at T down to that level, and
// its standard error; merge_range [M,2]; loss_update, loss (the curves of the merges one after the
// other, loss_end [M] their ends), samples and teacher_samples [R, d].
absl::Status WriteNetworkResult(const NetworkJob& job, network::Executor& executor,
                                const RunSummary& summary, const std::string& folder);

}  // namespace mergeplan
