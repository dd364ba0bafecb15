#pragma once

#include <string>

#include "absl/status/status.h"
#include "adapters/cases/mixture_job.h"
#include "adapters/experts/executor.h"
#include "planner/runs/result_file.h"

namespace mergeplan {

// Writes result.npz and result.toml of a finished run on a mixture.
//
// result.toml as for linear students (result.h), but: losses are E |student - target|^2 over
// held-out rows; achieved errors are E |student(z_j) - teacher(z_j)|^2 in native units with
// standard errors, against the teacher only; there is no effective time, and a prediction only of
// the whole.
//
// result.npz, d dimensions, M merges, N blocks: merge_range [M,2], loss_update [P], loss [M,P],
// fit_loss_update [F], fit_loss [F]; the student: student_shape (dimensions, experts, hidden,
// embedding), block_range [N,2], block_trained [N] (0: a single step of the teacher itself),
// parameters [N,n] (zero where not trained; planner order as adapters/experts/network.h has it);
// samples and teacher_samples [R,d]: what student and teacher make of the same unit noise, native.
absl::Status WriteMixtureResult(const MixtureJob& job, const experts::Executor& executor,
                                const RunSummary& summary, const std::string& folder);

}  // namespace mergeplan
