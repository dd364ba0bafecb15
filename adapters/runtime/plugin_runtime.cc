#include "adapters/runtime/plugin_runtime.h"

#include "absl/strings/str_cat.h"
#include "adapters/runtime/checkpoint.h"
#include "planner/base/status_macros.h"

namespace mergeplan {

Checkpointer::Checkpointer(std::string path, std::string fingerprint, double seconds)
    : path_(std::move(path)),
      fingerprint_(std::move(fingerprint)),
      seconds_(seconds),
      last_(Clock::now()) {}

absl::Status Checkpointer::Offer(const Executor& executor, bool forced) {
  if (path_.empty()) return absl::OkStatus();
  const Clock::time_point now = Clock::now();
  const double passed = std::chrono::duration<double>(now - last_).count();
  if (!forced) {
    if (passed < (requested_ ? 0.0 : seconds_)) return absl::OkStatus();
    if (seconds_ > 0 && passed < 20 * last_cost_) return absl::OkStatus();
  }
  MP_RETURN_IF_ERROR(WriteCheckpoint(executor.Save(), fingerprint_, path_));
  last_ = Clock::now();
  last_cost_ = std::chrono::duration<double>(last_ - now).count();
  requested_ = false;
  return absl::OkStatus();
}

absl::Status Checkpointer::Request(const Executor& executor) {
  requested_ = true;
  return Offer(executor, /*forced=*/false);
}

absl::StatusOr<TrainResult> PluginRuntime::TrainMerge(int merge) {
  MP_ASSIGN_OR_RETURN(const std::vector<TrainResult> results, TrainRound({merge}));
  return results.front();
}

absl::StatusOr<std::vector<TrainResult>> PluginRuntime::TrainRound(absl::Span<const int> merges) {
  std::vector<TrainResult> results(merges.size());
  for (size_t k = 0; k < merges.size(); ++k) {
    results[k].restored = executor_.records()[merges[k]].trained;
  }
  MP_RETURN_IF_ERROR(executor_.Train(merges));
  for (size_t k = 0; k < merges.size(); ++k) {
    const TrainedMerge& record = executor_.records()[merges[k]];
    results[k].updates = record.updates;
    results[k].initial_loss = record.initial_loss;
    results[k].final_loss = record.final_loss;
    results[k].seconds = record.seconds;
  }
  return results;
}

absl::StatusOr<EvaluationResult> PluginRuntime::Evaluate() {
  const Model& model = executor_.model();
  EvaluationResult result;
  result.merges_trained = executor_.merges_trained();
  result.predicted = model.Objective(executor_.PredictedValue(), model.spec().reference);
  const std::vector<double> value = executor_.Value();
  result.achieved = model.Objective(value, model.spec().reference);
  result.achieved_teacher = model.Objective(value, Reference::kTeacher);
  return result;
}

absl::Status PluginRuntime::Snapshot(int) { return absl::OkStatus(); }
absl::Status PluginRuntime::Release(int) { return absl::OkStatus(); }

absl::Status PluginRuntime::Checkpoint() { return checkpointer_.Request(executor_); }

void PluginRuntime::Log(LogLevel level, std::string_view text) {
  const char* word = level == LogLevel::kError     ? "error: "
                     : level == LogLevel::kWarning ? "warning: "
                                                   : "";
  printer_.Line(absl::StrCat(word, std::string(text)));
}

void PluginRuntime::Progress(double, std::string_view) {}

}  // namespace mergeplan
