#include "adapters/linear/batch_sums.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "absl/functional/function_ref.h"
#include "adapters/linear/sum_squares.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/parallel.h"

namespace mergeplan {
namespace {

// About how many numbers are drawn before a run can be stopped: some milliseconds.
constexpr double kTogether = 1 << 20;
// The same where they are drawn on a device, which needs more work to be busy, and how many sums of
// them come back.
constexpr double kTogetherElsewhere = 1 << 28, kSumsElsewhere = 1 << 21;
// How many numbers stay in the first cache between being drawn and being summed.
constexpr std::int64_t kPiece = 8192;
// Rows that are summed before the sum is added to those of other rows, at least.
constexpr std::int64_t kLeastChunkRows = 64;
// A draw from the chi^2 law takes as long as so many normal numbers.
constexpr double kChi2Cost = 32;
// Fewer numbers than these are drawn faster than a thread starts.
constexpr double kWorthAThread = 1 << 15;

// body(item, worker) for all items.
absl::Status ForItems(std::int64_t items, int threads, double numbers,
                      absl::FunctionRef<void(std::int64_t, int)> body) {
  const int workers = numbers < kWorthAThread ? 1 : threads;
  std::atomic<std::int64_t> next = 0;
  return ParallelFor(workers, workers, [&](int worker) {
    for (std::int64_t item = next++; item < items; item = next++) body(item, worker);
    return true;
  });
}

}  // namespace

template <typename T>
BatchSums<T>::BatchSums(const std::vector<MergeTask>& tasks, const TrainerOptions& options)
    : draws_(options.recipe.draws),
      threads_(ThreadCount(options.threads)),
      communicator_(options.communicator != nullptr ? options.communicator : Alone()),
      merges_(static_cast<std::int64_t>(tasks.size())),
      d_(static_cast<std::int64_t>(tasks.front().start.size())),
      rows_(options.rows()),
      row_begin_(communicator_->ShareBegin(rows_)),
      row_end_(communicator_->ShareEnd(rows_)),
      open_elsewhere_(options.unit_sums) {
  // Whole groups of the generator where rows are short.
  const std::int64_t fit = std::max<std::int64_t>(1, kPiece / d_);
  piece_rows_ = fit >= kNoiseGroup ? fit / kNoiseGroup * kNoiseGroup : fit;
  chunk_rows_ = std::max(piece_rows_, kLeastChunkRows);
  // As many chunks for everybody, so that all make as many calls; the last one may be empty.
  const std::int64_t ranks = communicator_->ranks();
  const std::int64_t share = (rows_ + ranks - 1) / ranks;
  chunks_ = (share + chunk_rows_ - 1) / chunk_rows_;
  for (const MergeTask& task : tasks) {
    const auto name = [&](int lane) {
      return StreamName::Of(task.seed, task.range.first, task.range.last, lane);
    };
    if (draws_ == Draws::kChi2) {
      chi2_.emplace_back(name(kChi2Lane), rows_);
    } else {
      streams_.emplace_back(name(kSamplesLane));
      shape_.names.push_back(name(kSamplesLane));
    }
    for (const double s : task.scale) scale2_.push_back(static_cast<T>(s) * static_cast<T>(s));
  }
  shape_.d = d_;
  shape_.rows = rows_;
  shape_.row_begin = row_begin_;
  shape_.row_end = row_end_;
  if (draws_ != Draws::kChi2 && open_elsewhere_ == nullptr) {
    noise_.assign(threads_, std::vector<float>(std::max(kPiece, d_)));
  }
}

template <typename T>
std::int64_t BatchSums<T>::Together(std::int64_t left) const {
  double numbers = static_cast<double>(merges_) * static_cast<double>(d_);
  if (draws_ == Draws::kSamples) {
    numbers *= static_cast<double>(rows_) / communicator_->ranks();
  }
  if (draws_ == Draws::kChi2) numbers *= kChi2Cost;
  double together = kTogether / numbers;
  if (open_elsewhere_ != nullptr && draws_ == Draws::kSamples) {
    const double sums = static_cast<double>(merges_) * static_cast<double>(d_);
    together = std::min(kTogetherElsewhere / numbers, kSumsElsewhere / sums);
  }
  return std::min(left, std::max<std::int64_t>(1, static_cast<std::int64_t>(together)));
}

template <typename T>
absl::Status BatchSums<T>::Draw(std::int64_t first, std::int64_t count, bool* complete) {
  *complete = true;
  if (draws_ == Draws::kChi2) return DrawChi2(first, count);
  if (draws_ == Draws::kSamples) return DrawSamples(first, count, complete);
  if (fixed_drawn_) return absl::OkStatus();
  MP_RETURN_IF_ERROR(DrawSamples(0, 1, complete));
  fixed_drawn_ = *complete;
  return absl::OkStatus();
}

template <typename T>
absl::Status BatchSums<T>::DrawElsewhere(std::int64_t first, std::int64_t count) {
  if (elsewhere_ == nullptr) {
    MP_ASSIGN_OR_RETURN(elsewhere_, open_elsewhere_(shape_));
  }
  stride_ = count;
  sums_.resize(merges_ * count * d_);
  unit_.resize(sums_.size());
  MP_RETURN_IF_ERROR(elsewhere_->Sum(static_cast<std::uint64_t>(first), count, unit_.data()));
  std::transform(unit_.begin(), unit_.end(), sums_.begin(),
                 [](double sum) { return static_cast<T>(sum); });
  MP_RETURN_IF_ERROR(communicator_->Sum(sums_.data(), static_cast<std::int64_t>(sums_.size())));
  Scale(count);
  return absl::OkStatus();
}

template <typename T>
absl::Status BatchSums<T>::DrawSamples(std::int64_t first, std::int64_t count, bool* complete) {
  if (open_elsewhere_ != nullptr) return DrawElsewhere(first, count);
  // Several updates are whole; a single one may be so large that only some of its chunks are made.
  std::int64_t chunks = chunks_;
  if (count == 1) {
    const double of_chunks = static_cast<double>(merges_) * static_cast<double>(chunk_rows_ * d_);
    chunks = std::min(chunks_ - next_chunk_,
                      std::max<std::int64_t>(1, static_cast<std::int64_t>(kTogether / of_chunks)));
  }
  // Short updates are drawn several at a time.
  const std::int64_t size = rows_ * d_;
  const bool whole = communicator_->ranks() == 1 && chunks_ == 1;  // one update follows the other
  const std::int64_t block = whole ? std::clamp<std::int64_t>(kPiece / size, 1, count) : 1;
  const std::int64_t blocks = (count + block - 1) / block;
  if (next_chunk_ == 0) {
    stride_ = count;
    sums_.assign(merges_ * count * d_, T{0});
  }
  const bool direct = chunks_ == 1;
  if (!direct) partial_.assign(merges_ * count * chunks * d_, T{0});

  const auto item = [&](std::int64_t index, int worker) {
    const std::int64_t chunk = index % chunks;
    const std::int64_t begin = index / chunks % blocks * block;
    const std::int64_t i = index / chunks / blocks;
    float* noise = noise_[worker].data();
    const auto from = static_cast<std::uint64_t>(first + begin) * static_cast<std::uint64_t>(size);
    if (block > 1) {
      const std::int64_t updates = std::min(block, count - begin);
      streams_[i].FillAt(from, noise, updates * size);
      for (std::int64_t u = 0; u < updates; ++u) {
        SumSquares(noise + u * size, rows_, d_, sums_.data() + (i * count + begin + u) * d_);
      }
      return;
    }
    T* sums = direct ? sums_.data() + (i * count + begin) * d_
                     : partial_.data() + ((i * count + begin) * chunks + chunk) * d_;
    const std::int64_t chunk_begin = row_begin_ + (next_chunk_ + chunk) * chunk_rows_;
    const std::int64_t chunk_end = std::min(row_end_, chunk_begin + chunk_rows_);
    for (std::int64_t row = chunk_begin; row < chunk_end; row += piece_rows_) {
      const std::int64_t rows = std::min(piece_rows_, chunk_end - row);
      streams_[i].FillAt(from + static_cast<std::uint64_t>(row * d_), noise, rows * d_);
      SumSquares(noise, rows, d_, sums);
    }
  };
  const double numbers = static_cast<double>(merges_ * count * chunks) *
                         static_cast<double>(std::min(rows_, chunk_rows_) * d_);
  MP_RETURN_IF_ERROR(ForItems(merges_ * blocks * chunks, threads_, numbers, item));

  if (!direct) {  // chunk after chunk, however they were made
    for (std::int64_t s = 0; s < merges_ * count; ++s) {
      T* sums = sums_.data() + s * d_;
      for (std::int64_t c = 0; c < chunks; ++c) {
        const T* part = partial_.data() + (s * chunks + c) * d_;
        for (std::int64_t k = 0; k < d_; ++k) sums[k] += part[k];
      }
    }
  }
  next_chunk_ += chunks;
  *complete = next_chunk_ == chunks_;
  if (*complete) {
    next_chunk_ = 0;
    MP_RETURN_IF_ERROR(communicator_->Sum(sums_.data(), static_cast<std::int64_t>(sums_.size())));
    Scale(count);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status BatchSums<T>::DrawChi2(std::int64_t first, std::int64_t count) {
  stride_ = count;
  sums_.resize(merges_ * count * d_);
  const std::int64_t block = std::clamp<std::int64_t>(256 / d_, 1, count);
  const std::int64_t blocks = (count + block - 1) / block;
  const auto item = [&](std::int64_t index, int) {
    const std::int64_t i = index / blocks, begin = index % blocks * block;
    const std::int64_t end = std::min(count, begin + block);
    T* sums = sums_.data() + (i * count + begin) * d_;
    for (std::int64_t n = (first + begin) * d_; n < (first + end) * d_; ++n) {
      *sums++ = static_cast<T>(chi2_[i].At(static_cast<std::uint64_t>(n)));
    }
  };
  MP_RETURN_IF_ERROR(ForItems(merges_ * blocks, threads_,
                              static_cast<double>(merges_ * count * d_) * kChi2Cost, item));
  Scale(count);
  return absl::OkStatus();
}

// Of unit noise to that of the merges.
template <typename T>
void BatchSums<T>::Scale(std::int64_t count) {
  for (std::int64_t i = 0; i < merges_; ++i) {
    const T* scale2 = scale2_.data() + i * d_;
    for (std::int64_t u = 0; u < count; ++u) {
      T* sums = sums_.data() + (i * count + u) * d_;
      for (std::int64_t k = 0; k < d_; ++k) sums[k] *= scale2[k];
    }
  }
}

template class BatchSums<double>;
template class BatchSums<float>;

}  // namespace mergeplan
