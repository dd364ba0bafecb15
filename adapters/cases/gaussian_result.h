#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/cases/executor.h"
#include "adapters/cases/gaussian_job.h"
#include "planner/runs/result_file.h"

namespace mergeplan {

// Figures of an executed plan.
RunSummary Summarize(const Job& job, const Executor& executor);

// Writes result.npz and result.toml of a finished run.
//
// result.toml: the summary, the predicted and achieved error against both references (native
// units), and one [[merge]] table per merge: first, last, round, updates, teacher_calls, seconds,
// initial_loss, final_loss (expected over z ~ N(0, n)), residual, predicted_error, achieved_error
// (sum_k w_k (product of the teacher's steps - V)^2 of that merge), effective_time
// (Executor::EffectiveTime). [training] is the recipe, [arrays] names and hashes the .npz. Where
// the recipe has no prediction there are no keys that begin with predicted.
//
// result.npz, d dimensions, M merges: value [d] and predicted [d] (NaN without one) of the student,
// tau [d], merge_range [M,2], merge_value [M,d], merge_predicted [M,d], loss_update [P] and loss
// [M,P] (the sampled losses of single batches), samples and teacher_samples [16,d]: what student
// and teacher make of the same unit noise, in the data's units, the mean added back.
absl::Status WriteResult(const Job& job, const Executor& executor, const std::string& folder);

}  // namespace mergeplan
