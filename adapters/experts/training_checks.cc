#include "adapters/experts/training_checks.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/runs/curve_updates.h"

namespace mergeplan::experts {
namespace {

constexpr int kMaxBatch = 1 << 24;
constexpr std::int64_t kMaxPoolRows = std::int64_t{1} << 28;

absl::Status CheckTask(const TrainTask& task, const Inputs& inputs, const TrainerOptions& options) {
  if (static_cast<std::int64_t>(task.start.size()) != options.shape.parameters()) {
    return absl::InvalidArgumentError(absl::StrCat(task.name, ": ", task.start.size(),
                                                   " parameters to start from, expected ",
                                                   options.shape.parameters()));
  }
  const int last = task.first_level + static_cast<int>(task.targets.size()) - 1;
  if (task.targets.empty() || task.first_level < 1 || last > inputs.teacher().steps()) {
    return absl::InvalidArgumentError(absl::StrCat(task.name, ": the levels ", task.first_level,
                                                   " to ", last, ", expected some of 1 to ",
                                                   inputs.teacher().steps()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTraining(const std::vector<TrainTask>& tasks, const Inputs& inputs,
                           const TrainerOptions& options) {
  MP_RETURN_IF_ERROR(Validate(options.shape));
  MP_RETURN_IF_ERROR(Validate(options.optimizer));
  if (options.shape.dimensions != inputs.teacher().dimensions()) {
    return absl::InvalidArgumentError(absl::StrCat("the student has ", options.shape.dimensions,
                                                   " dimensions, the teacher ",
                                                   inputs.teacher().dimensions()));
  }
  if (options.batch < 1 || options.batch > kMaxBatch) {
    return absl::InvalidArgumentError(
        absl::StrCat("the batch is ", options.batch, ", expected 1 to ", kMaxBatch));
  }
  if (options.updates < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the number of updates is ", options.updates, ", expected 0 or more"));
  }
  if (options.inputs == InputKind::kPool &&
      (options.pool_rows < 1 || options.pool_rows > kMaxPoolRows)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the pool has ", options.pool_rows, " rows, expected 1 to ", kMaxPoolRows));
  }
  if (tasks.empty()) return absl::InvalidArgumentError("there is nothing to train");
  for (const TrainTask& task : tasks) MP_RETURN_IF_ERROR(CheckTask(task, inputs, options));
  return absl::OkStatus();
}

absl::Status CheckState(const TrainTask& task, const TaskState& state,
                        const TrainerOptions& options) {
  const std::vector<std::int64_t> points = CurveUpdates(options.updates);
  const auto passed = std::lower_bound(points.begin(), points.end(), state.updates);
  const auto parameters = static_cast<std::size_t>(options.shape.parameters());
  const std::size_t moments = options.optimizer.kind == OptimizerKind::kAdam ? parameters : 0;
  if (state.updates >= 0 && state.updates <= options.updates &&
      state.parameters.size() == parameters && state.first_moment.size() == moments &&
      state.second_moment.size() == moments &&
      state.curve.size() == static_cast<std::size_t>(passed - points.begin())) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      task.name, ": a saved training of ", state.updates, " updates, ", state.parameters.size(),
      " parameters and ", state.curve.size(), " losses does not fit one of ", options.updates,
      " updates and ", parameters, " parameters"));
}

absl::Status NotFinite(const TrainTask& task, double loss, std::int64_t made,
                       const TrainerOptions& options) {
  return absl::FailedPreconditionError(
      absl::StrCat(task.name, ": the loss is ", loss,
                   std::isfinite(loss) ? " and its gradient is not finite" : "", " at update ",
                   made + 1, " of ", options.updates, "; use a smaller learning rate, or float64"));
}

}  // namespace mergeplan::experts
