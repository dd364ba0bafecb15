#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "adapters/runtime/progress.h"
#include "adapters/runtime/recorder.h"
#include "adapters/runtime/training.h"
#include "plugins/host/runtime.h"

namespace mergeplan {

// Decides when a checkpoint is written: what is asked for is done at once, unless writing would
// take more than a twentieth of the time; then at the next occasion.
class Checkpointer {
 public:
  // Writes into `folder` at least every `seconds` of training (0: at every occasion).
  Checkpointer(std::string folder, double seconds);
  // Keeps nothing.
  static Checkpointer Nowhere() { return {"", 0}; }

  // Between two updates. `forced`: now.
  absl::Status Offer(const Training& training, bool forced);
  // Soon.
  absl::Status Request(const Training& training);

 private:
  using Clock = std::chrono::steady_clock;
  std::string folder_;
  double seconds_;
  bool requested_ = false;
  Clock::time_point last_;
  double last_cost_ = 0;  // seconds that the last one took
};

// A training as a strategy plugin drives it.
class PluginRuntime : public RuntimeInterface {
 public:
  PluginRuntime(Training& training, Checkpointer& checkpointer, ProgressPrinter& printer,
                Recorder& recorder, std::function<bool()> cancelled)
      : training_(training),
        checkpointer_(checkpointer),
        printer_(printer),
        recorder_(recorder),
        cancelled_(std::move(cancelled)) {}

  absl::StatusOr<TrainResult> TrainMerge(int merge) override;
  absl::StatusOr<std::vector<TrainResult>> TrainRound(absl::Span<const int> merges) override;
  absl::StatusOr<EvaluationResult> Evaluate() override;
  absl::Status Snapshot(int merge) override;
  absl::Status Release(int merge) override;
  absl::Status Checkpoint() override;
  void Log(LogLevel level, std::string_view text) override;
  // The training's own progress is finer.
  void Progress(double fraction, std::string_view what) override;
  bool Cancelled() override { return cancelled_(); }

 private:
  Training& training_;
  Checkpointer& checkpointer_;
  ProgressPrinter& printer_;
  Recorder& recorder_;
  std::function<bool()> cancelled_;
};

}  // namespace mergeplan
