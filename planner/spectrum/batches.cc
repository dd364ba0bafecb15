#include "planner/spectrum/batches.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <new>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/parallel.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define MP_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define MP_CLONES
#endif

namespace mergeplan {
namespace {

// Values that a thread reads at once: what it has read is still near when it is looked at.
constexpr std::int64_t kPiece = std::int64_t{1} << 16;

// A value times zero is zero exactly where it is finite.
MP_CLONES bool AllFinite(const double* values, std::size_t count) {
  constexpr std::size_t kLanes = 16;
  double lanes[kLanes] = {};
  std::size_t k = 0;
  for (; k + kLanes <= count; k += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += values[k + lane] * 0.0;
  }
  for (; k < count; ++k) lanes[0] += values[k] * 0.0;
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return std::isfinite(sum);
}

}  // namespace

BatchReader::BatchReader(SampleSource& source, int dimensions, int threads)
    : source_(source),
      file_(source.row_file()),
      d_(dimensions),
      rows_(std::clamp((1 << 20) / dimensions, 256, 8192)),
      threads_(threads),
      buffer_(static_cast<std::size_t>(rows_) * static_cast<std::size_t>(dimensions)) {}

absl::StatusOr<bool> BatchReader::ReadFromFile(std::int64_t count) {
  const std::int64_t piece = std::max<std::int64_t>(1, kPiece / d_);
  std::atomic<bool> finite = true;
  std::mutex mutex;
  absl::Status failed;
  MP_RETURN_IF_ERROR(
      ParallelFor(static_cast<int>((count + piece - 1) / piece), threads_, [&](int task) {
        try {
          const std::int64_t first = task * piece, rows = std::min(piece, count - first);
          double* out = buffer_.data() + first * d_;
          if (const absl::Status read = file_->Read(next_ + first, rows, out); !read.ok()) {
            const std::lock_guard<std::mutex> lock(mutex);
            failed = read;
          } else if (!AllFinite(out, static_cast<std::size_t>(rows * d_))) {
            finite = false;
          }
          return true;
        } catch (const std::bad_alloc&) {
          return false;
        }
      }));
  MP_RETURN_IF_ERROR(failed);
  return finite.load();
}

absl::StatusOr<int> BatchReader::Next() {
  if (file_ != nullptr) {
    const std::int64_t count = std::min<std::int64_t>(rows_, file_->rows() - next_);
    if (count == 0) return 0;
    MP_ASSIGN_OR_RETURN(const bool finite, ReadFromFile(count));
    if (finite) {
      next_ += count;
      return static_cast<int>(count);
    }
    file_ = nullptr;
    if (next_ > 0) MP_RETURN_IF_ERROR(source_.Skip(next_));
  }
  int filled = 0;
  while (filled < rows_) {
    const std::size_t begin = static_cast<std::size_t>(filled) * static_cast<std::size_t>(d_);
    MP_ASSIGN_OR_RETURN(const int got, source_.Read(absl::MakeSpan(buffer_).subspan(begin)));
    if (got == 0) break;
    if (got < 0 || got > rows_ - filled) {
      return absl::InternalError(absl::StrCat("the reader returned ", got, " samples where ",
                                              rows_ - filled, " were asked for"));
    }
    filled += got;
  }
  return filled;
}

}  // namespace mergeplan
