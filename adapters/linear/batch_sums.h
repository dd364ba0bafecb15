#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "adapters/linear/trainer.h"
#include "adapters/linear/unit_sums.h"
#include "adapters/noise/chi_squared.h"
#include "adapters/noise/noise.h"

namespace mergeplan {

// The streams of a merge.
inline constexpr int kSamplesLane = 0, kChi2Lane = 1;

// sum_b z_b^2 over the batches of merges, per dimension: all that linear students see of them.
// Drawn as the recipe says, for several updates at a time, on all threads.
template <typename T>
class BatchSums {
 public:
  // `tasks` are read here only.
  BatchSums(const std::vector<MergeTask>& tasks, const TrainerOptions& options);

  // How many updates to ask for at a time when `left` are left: about 2^20 numbers, at least one.
  std::int64_t Together(std::int64_t left) const;

  // Draws on for the updates first .. first + count - 1, for some milliseconds; `*complete` when
  // all their sums are there. While they are not, the next call must be the same.
  // RESOURCE_EXHAUSTED where the memory does not do.
  absl::Status Draw(std::int64_t first, std::int64_t count, bool* complete);

  // d sums of merge i and the update first + u of the last Draw.
  const T* Of(std::int64_t i, std::int64_t u) const {
    return sums_.data() + (i * stride_ + (stride_ == 1 ? 0 : u)) * d_;
  }

 private:
  absl::Status DrawSamples(std::int64_t first, std::int64_t count, bool* complete);
  absl::Status DrawElsewhere(std::int64_t first, std::int64_t count);
  absl::Status DrawChi2(std::int64_t first, std::int64_t count);
  void Scale(std::int64_t count);

  const Draws draws_;
  const int threads_;
  const std::shared_ptr<const Communicator> communicator_;
  const std::int64_t merges_, d_, rows_;
  std::int64_t row_begin_, row_end_;  // those of a batch that are drawn here
  std::int64_t chunk_rows_, chunks_;  // of an update; the order of additions follows from them
  std::int64_t piece_rows_;           // of a chunk that are in the cache at one time
  std::vector<NoiseStream> streams_;  // one per merge
  OpenUnitSums open_elsewhere_;       // null: the loops here
  UnitSumsShape shape_;
  std::unique_ptr<UnitSums> elsewhere_;  // once it was opened
  std::vector<double> unit_;
  std::vector<ChiSquaredStream> chi2_;
  std::vector<T> scale2_;                  // merges x d
  std::vector<T> sums_;                    // merges x count x d
  std::vector<T> partial_;                 // merges x count x chunks of one call x d
  std::vector<std::vector<float>> noise_;  // one per thread
  std::int64_t stride_ = 1;                // updates in sums_
  std::int64_t next_chunk_ = 0;
  bool fixed_drawn_ = false;
};

}  // namespace mergeplan
