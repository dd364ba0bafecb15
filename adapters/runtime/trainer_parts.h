#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "adapters/runtime/noise.h"
#include "adapters/runtime/trainer.h"

// What the two kinds of trainers share. Private to adapters/runtime.

namespace mergeplan {

// How the noise of one merge is cut into draws. The operators are diagonal, so a slice of the
// dimensions (a lane) trains by itself: it has its own stream and draws [updates_per_draw, batch,
// width] numbers at a time, a piece that stays in the cache until the step has read it. Depends on
// the batch and d only.
struct DrawLayout {
  int lanes = 1;
  std::int64_t d = 1;
  std::int64_t updates_per_draw = 1;

  static DrawLayout Of(int batch, std::int64_t d);
  // The dimensions [LaneBegin(l), LaneBegin(l + 1)) belong to lane l.
  std::int64_t LaneBegin(int lane) const;
  std::int64_t LaneWidth(int lane) const { return LaneBegin(lane + 1) - LaneBegin(lane); }
  std::int64_t WidestLane() const;
};

// The learning rate with all its factors: a <- a - SumRate * sum_b z (a z - p z).
inline double SumRate(const TrainerOptions& options) {
  return 2 * options.lr * options.feature_norm / options.batch;
}

std::vector<NoiseStream> MakeStreams(const std::vector<MergeTask>& tasks,
                                     const TrainerOptions& options, int lanes);

// Does the state belong to a trainer of `merges` merges of d dimensions with these options?
absl::Status CheckState(const TrainerState& state, std::int64_t merges, std::int64_t d,
                        const TrainerOptions& options, std::int64_t streams);

// The error for a loss that is no finite number after `updates` updates of `task`.
absl::Status NotFinite(const MergeTask& task, std::int64_t updates, const TrainerOptions& options);

std::unique_ptr<Trainer> MakeFusedTrainer(std::vector<MergeTask> tasks,
                                          const TrainerOptions& options);
absl::StatusOr<std::unique_ptr<Trainer>> MakeTensorTrainer(std::vector<MergeTask> tasks,
                                                           const TrainerOptions& options);

}  // namespace mergeplan
