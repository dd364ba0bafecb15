#include "planner/spectrum/batches.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <new>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "planner/base/clones.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/kernels.h"
#include "planner/spectrum/parallel.h"

namespace mergeplan {
namespace {

// Values that a thread reads at once: what it has read is still near when it is looked at.
constexpr std::int64_t kPiece = std::int64_t{1} << 16;

}  // namespace

int BatchRows(int dimensions) {
  constexpr int kBlock = kPackedRows;  // whole blocks of moments.h
  return std::clamp((1 << 20) / dimensions / kBlock, 1, 42) * kBlock;
}

// A value times zero is zero exactly where it is finite.
#define MP_ALL_FINITE(T)                                                                        \
  MP_CLONES bool AllFinite(const T* values, std::size_t count) {                                \
    constexpr std::size_t kLanes = 128 / sizeof(T);                                             \
    T lanes[kLanes] = {};                                                                       \
    std::size_t k = 0;                                                                          \
    for (; k + kLanes <= count; k += kLanes) {                                                  \
      for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += values[k + lane] * T{0}; \
    }                                                                                           \
    for (; k < count; ++k) lanes[0] += values[k] * T{0};                                        \
    T sum = 0;                                                                                  \
    for (const T lane : lanes) sum += lane;                                                     \
    return std::isfinite(sum);                                                                  \
  }
MP_ALL_FINITE(float)
MP_ALL_FINITE(double)

template <typename T>
BatchReader<T>::BatchReader(SampleSource& source, int dimensions, int threads)
    : source_(source),
      file_(source.row_file()),
      d_(dimensions),
      rows_(BatchRows(dimensions)),
      threads_(threads),
      buffer_(static_cast<std::size_t>(rows_) * static_cast<std::size_t>(dimensions)) {}

template <typename T>
absl::StatusOr<bool> BatchReader<T>::ReadFromFile(std::int64_t count) {
  const std::int64_t piece = std::max<std::int64_t>(1, kPiece / d_);
  std::atomic<bool> finite = true;
  std::mutex mutex;
  absl::Status failed;
  MP_RETURN_IF_ERROR(
      ParallelFor(static_cast<int>((count + piece - 1) / piece), threads_, [&](int task) {
        try {
          const std::int64_t first = task * piece, rows = std::min(piece, count - first);
          T* out = buffer_.data() + first * d_;
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

// Samples behind the first `filled`.
template <typename T>
absl::StatusOr<int> BatchReader<T>::ReadFromSource(int filled) {
  const std::size_t d = static_cast<std::size_t>(d_), begin = static_cast<std::size_t>(filled) * d;
  absl::Span<double> room;
  if constexpr (std::is_same_v<T, double>) {
    room = absl::MakeSpan(buffer_).subspan(begin);
  } else {
    wide_.resize(buffer_.size() - begin);
    room = absl::MakeSpan(wide_);
  }
  MP_ASSIGN_OR_RETURN(const int got, source_.Read(room));
  if (got < 0 || got > rows_ - filled) {
    return absl::InternalError(absl::StrCat("the reader returned ", got, " samples where ",
                                            rows_ - filled, " were asked for"));
  }
  if constexpr (!std::is_same_v<T, double>) {
    std::transform(wide_.begin(), wide_.begin() + static_cast<std::ptrdiff_t>(got) * d_,
                   buffer_.begin() + static_cast<std::ptrdiff_t>(begin),
                   [](double value) { return static_cast<T>(value); });
  }
  return got;
}

template <typename T>
absl::StatusOr<int> BatchReader<T>::Next() {
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
    MP_ASSIGN_OR_RETURN(const int got, ReadFromSource(filled));
    if (got == 0) break;
    filled += got;
  }
  return filled;
}

template class BatchReader<float>;
template class BatchReader<double>;

}  // namespace mergeplan
