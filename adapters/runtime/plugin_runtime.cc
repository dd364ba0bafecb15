#include "adapters/runtime/plugin_runtime.h"

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace mergeplan {

Checkpointer::Checkpointer(std::string folder, double seconds)
    : folder_(std::move(folder)), seconds_(seconds), last_(Clock::now()) {}

absl::Status Checkpointer::Offer(const Training& training, bool forced) {
  if (folder_.empty()) return absl::OkStatus();
  const Clock::time_point now = Clock::now();
  const double passed = std::chrono::duration<double>(now - last_).count();
  if (!forced) {
    if (passed < (requested_ ? 0.0 : seconds_)) return absl::OkStatus();
    if (seconds_ > 0 && passed < 20 * last_cost_) return absl::OkStatus();
  }
  MP_RETURN_IF_ERROR(training.WriteCheckpoint(folder_));
  last_ = Clock::now();
  last_cost_ = std::chrono::duration<double>(last_ - now).count();
  requested_ = false;
  return absl::OkStatus();
}

absl::Status Checkpointer::Request(const Training& training) {
  requested_ = true;
  return Offer(training, /*forced=*/false);
}

absl::StatusOr<TrainResult> PluginRuntime::TrainMerge(int merge) {
  MP_ASSIGN_OR_RETURN(const std::vector<TrainResult> results, TrainRound({merge}));
  return results.front();
}

absl::StatusOr<std::vector<TrainResult>> PluginRuntime::TrainRound(absl::Span<const int> merges) {
  std::vector<bool> restored;
  std::vector<int> fresh;
  restored.reserve(merges.size());
  for (const int merge : merges) {
    restored.push_back(training_.trained(merge));
    if (!restored.back()) fresh.push_back(merge);
  }
  MP_RETURN_IF_ERROR(training_.Train(merges));
  MP_RETURN_IF_ERROR(recorder_.Trained(training_, fresh));
  std::vector<TrainResult> results;
  results.reserve(merges.size());
  for (size_t k = 0; k < merges.size(); ++k) {
    results.push_back(training_.Figures(merges[k]));
    results.back().restored = restored[k];
  }
  return results;
}

absl::StatusOr<EvaluationResult> PluginRuntime::Evaluate() { return training_.Evaluate(); }

absl::Status PluginRuntime::Snapshot(int merge) {
  training_.Hold(merge);
  return absl::OkStatus();
}

absl::Status PluginRuntime::Release(int merge) {
  training_.Release(merge);
  return absl::OkStatus();
}

absl::Status PluginRuntime::Checkpoint() { return checkpointer_.Request(training_); }

void PluginRuntime::Log(LogLevel level, std::string_view text) {
  const char* word = level == LogLevel::kError     ? "error: "
                     : level == LogLevel::kWarning ? "warning: "
                                                   : "";
  printer_.Line(absl::StrCat(word, std::string(text)));
}

void PluginRuntime::Progress(double, std::string_view) {}

}  // namespace mergeplan
