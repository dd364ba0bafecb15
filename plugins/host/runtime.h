#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mergeplan {

// What the training of one merge brought; NaN where the runtime cannot say.
struct TrainResult {
  bool restored = false;  // taken from a checkpoint of an earlier run, not trained now
  std::int64_t updates = 0;
  double initial_loss = std::numeric_limits<double>::quiet_NaN();
  double final_loss = std::numeric_limits<double>::quiet_NaN();
  double seconds = std::numeric_limits<double>::quiet_NaN();
};

// The student as it stands against the reference; NaN where the runtime cannot say.
struct EvaluationResult {
  int merges_trained = 0;
  double predicted = std::numeric_limits<double>::quiet_NaN();         // of the plan, linear model
  double achieved = std::numeric_limits<double>::quiet_NaN();          // of what was trained
  double achieved_teacher = std::numeric_limits<double>::quiet_NaN();  // against the teacher
};

enum class LogLevel { kInfo = 0, kWarning = 1, kError = 2 };

// What a runtime implements to be driven by a strategy plugin (the C++ side of mergeplan_runtime;
// Plugin::Execute adapts it). Merges are named by their index into plan.merges() of the plan given
// to Execute.
//
// The host has checked every call before it arrives: indices are valid, the children of a merge
// have been trained (or restored) before it, no merge is trained twice in one Execute, the merges
// of a round are distinct and none contains another, every release matches a snapshot, and
// fractions are within 0..1. Exceptions that leave a method become INTERNAL errors for the plugin.
//
// All methods but Log, Progress and Cancelled are called from the thread that called Execute; those
// three may come from any thread while Execute runs, also at the same time.
class RuntimeInterface {
 public:
  virtual ~RuntimeInterface() = default;

  // Trains one merge with the run's budget. CANCELLED when the user stopped it; the merge then
  // counts as not trained.
  virtual absl::StatusOr<TrainResult> TrainMerge(int merge) = 0;
  // Trains merges that do not depend on each other; one result each, in their order.
  virtual absl::StatusOr<std::vector<TrainResult>> TrainRound(absl::Span<const int> merges) = 0;
  // Evaluates the student as it stands: untrained blocks are made of what has been trained inside
  // them, and of teacher steps.
  virtual absl::StatusOr<EvaluationResult> Evaluate() = 0;
  // Adds a hold on the trained operator of a merge, which must then stay until as many Releases.
  virtual absl::Status Snapshot(int merge) = 0;
  virtual absl::Status Release(int merge) = 0;
  // Writes what has been trained, so that the run can be resumed from here.
  virtual absl::Status Checkpoint() = 0;

  virtual void Log(LogLevel level, std::string_view text) = 0;
  // `what` may be empty.
  virtual void Progress(double fraction, std::string_view what) = 0;
  virtual bool Cancelled() = 0;
};

}  // namespace mergeplan
