#include "planner/spectrum/diagonal_pass.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <mutex>
#include <new>
#include <utility>

#include "planner/base/status_macros.h"
#include "planner/spectrum/parallel.h"

#define MP_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))

namespace mergeplan {
namespace {

// Columns whose sums stay in the first-level cache, and values of a block, which stays in the
// second-level one while it is read and gone through twice. Both are part of the result's rounding,
// so they do not depend on the machine.
constexpr std::ptrdiff_t kTile = 64;
constexpr std::int64_t kBlockValues = std::int64_t{1} << 16;
constexpr std::int64_t kBlocksInTask = 64;
constexpr int kTasksAtOnce = 16;  // whose results are held, then added in their order

// Moments of `count` rows of up to kTile columns, `stride` apart, about their own mean.
#define MP_TILE_MOMENTS(name, T)                                                           \
  MP_CLONES void name(const T* rows, std::ptrdiff_t count, std::ptrdiff_t stride,          \
                      std::ptrdiff_t width, const double* shift, double* mean, double* m2, \
                      double* m3, double* m4) {                                            \
    double offset[kTile] = {}, sum[kTile] = {}, second[kTile] = {}, third[kTile] = {},     \
           fourth[kTile] = {};                                                             \
    for (std::ptrdiff_t c = 0; c < width; ++c) offset[c] = shift[c];                       \
    for (std::ptrdiff_t r = 0; r < count; ++r) {                                           \
      const T* row = rows + r * stride;                                                    \
      for (std::ptrdiff_t c = 0; c < width; ++c) sum[c] += double{row[c]} - offset[c];     \
    }                                                                                      \
    for (std::ptrdiff_t c = 0; c < width; ++c) sum[c] /= static_cast<double>(count);       \
    for (std::ptrdiff_t r = 0; r < count; ++r) {                                           \
      const T* row = rows + r * stride;                                                    \
      for (std::ptrdiff_t c = 0; c < width; ++c) {                                         \
        const double x = (double{row[c]} - offset[c]) - sum[c], square = x * x;            \
        second[c] += square;                                                               \
        third[c] += square * x;                                                            \
        fourth[c] += square * square;                                                      \
      }                                                                                    \
    }                                                                                      \
    for (std::ptrdiff_t c = 0; c < width; ++c) {                                           \
      mean[c] = sum[c];                                                                    \
      m2[c] = second[c];                                                                   \
      m3[c] = third[c];                                                                    \
      m4[c] = fourth[c];                                                                   \
    }                                                                                      \
  }
MP_TILE_MOMENTS(TileMoments, float)
MP_TILE_MOMENTS(TileMoments, double)

// Sums of a growing set; means are relative to the shift.
class Sums {
 public:
  explicit Sums(std::size_t d) : mean_(d), m2_(d), m3_(d), m4_(d) {}

  // Adds `count` samples of one dimension by the pairwise formulas (moments.h).
  void AddTo(std::size_t i, double before, double count, double mean, double m2, double m3,
             double m4) {
    const double n = before + count, fa = before / n, fb = count / n;
    const double delta = mean - mean_[i], square = delta * delta;
    m4_[i] += m4 + square * square * before * fb * (fa * fa - fa * fb + fb * fb) +
              6 * square * (fa * fa * m2 + fb * fb * m2_[i]) + 4 * delta * (fa * m3 - fb * m3_[i]);
    m3_[i] += m3 + square * delta * before * fb * (fa - fb) + 3 * delta * (fa * m2 - fb * m2_[i]);
    m2_[i] += m2 + square * before * fb;
    mean_[i] += delta * fb;
  }
  void Counted(std::int64_t count) { count_ += count; }
  void Add(const Sums& other) {
    for (std::size_t i = 0; i < mean_.size(); ++i) {
      AddTo(i, static_cast<double>(count_), static_cast<double>(other.count_), other.mean_[i],
            other.m2_[i], other.m3_[i], other.m4_[i]);
    }
    count_ += other.count_;
  }
  // `rows` (count x d). Samples of few dimensions stand side by side as one of many, so that the
  // inner loops are long.
  template <typename T>
  void AddRows(const T* rows, std::int64_t count, const std::vector<double>& shift) {
    const std::ptrdiff_t d = static_cast<std::ptrdiff_t>(mean_.size());
    const std::ptrdiff_t fold =
        std::min<std::ptrdiff_t>(std::max<std::ptrdiff_t>(1, kTile / d), count);
    const std::ptrdiff_t width = fold * d, folded = count / fold, rest = count - folded * fold;
    Fold(rows, folded, width, shift);
    if (rest > 0) Fold(rows + folded * width, 1, rest * d, shift);
  }
  DiagonalMoments Take(const std::vector<double>& shift) && {
    for (std::size_t i = 0; i < mean_.size(); ++i) mean_[i] += shift[i];
    return {count_, std::move(mean_), std::move(m2_), std::move(m3_), std::move(m4_)};
  }
  bool Finite() const {
    // An infinite value makes the mean, or its deviation from it, no number; a NaN does so anyway.
    const auto finite = [](double v) { return std::isfinite(v); };
    return std::all_of(mean_.begin(), mean_.end(), finite);
  }

 private:
  // `count` rows of `width` columns, of which every d-th is of one dimension; shift repeats.
  template <typename T>
  void Fold(const T* rows, std::ptrdiff_t count, std::ptrdiff_t width,
            const std::vector<double>& shift) {
    const std::ptrdiff_t d = static_cast<std::ptrdiff_t>(mean_.size());
    double mean[kTile], m2[kTile], m3[kTile], m4[kTile];
    const double before = static_cast<double>(count_);
    for (std::ptrdiff_t begin = 0; begin < width; begin += kTile) {
      const std::ptrdiff_t now = std::min(kTile, width - begin);
      TileMoments(rows + begin, count, width, now, shift.data() + begin, mean, m2, m3, m4);
      for (std::ptrdiff_t c = 0; c < now; ++c) {
        const std::ptrdiff_t copy = (begin + c) / d;
        AddTo(static_cast<std::size_t>((begin + c) % d), before + static_cast<double>(copy * count),
              static_cast<double>(count), mean[c], m2[c], m3[c], m4[c]);
      }
    }
    count_ += count * (width / d);
  }

  std::int64_t count_ = 0;
  std::vector<double> mean_, m2_, m3_, m4_;
};

template <typename T>
absl::StatusOr<std::optional<DiagonalMoments>> Read(const RowFile& file, int d, int threads) {
  const std::int64_t n = file.rows();
  // The first sample, as often as a row of folded ones needs it.
  std::vector<double> shift(static_cast<std::size_t>(d));
  MP_RETURN_IF_ERROR(file.Read(0, 1, shift.data()));
  while (shift.size() < static_cast<std::size_t>(kTile) + static_cast<std::size_t>(d)) {
    shift.push_back(shift[shift.size() - static_cast<std::size_t>(d)]);
  }
  const std::int64_t block = std::max<std::int64_t>(1, kBlockValues / d);
  const std::int64_t in_task = block * kBlocksInTask;
  const std::int64_t tasks = (n + in_task - 1) / in_task;
  Sums all(static_cast<std::size_t>(d));
  std::mutex mutex;
  absl::Status failed;
  for (std::int64_t done = 0; done < tasks; done += kTasksAtOnce) {
    const int now = static_cast<int>(std::min<std::int64_t>(kTasksAtOnce, tasks - done));
    std::vector<Sums> parts(static_cast<std::size_t>(now), Sums(static_cast<std::size_t>(d)));
    MP_RETURN_IF_ERROR(ParallelFor(now, threads, [&](int task) {
      try {
        std::vector<T> rows(static_cast<std::size_t>(block * d));
        const std::int64_t begin = (done + task) * in_task, end = std::min(n, begin + in_task);
        for (std::int64_t first = begin; first < end; first += block) {
          const std::int64_t count = std::min(block, end - first);
          if (const absl::Status read = file.Read(first, count, rows.data()); !read.ok()) {
            const std::lock_guard<std::mutex> lock(mutex);
            failed = read;
            return true;
          }
          parts[static_cast<std::size_t>(task)].AddRows(rows.data(), count, shift);
        }
        return true;
      } catch (const std::bad_alloc&) {
        return false;
      }
    }));
    MP_RETURN_IF_ERROR(failed);
    for (const Sums& part : parts) all.Add(part);
    if (!all.Finite()) return std::optional<DiagonalMoments>();
  }
  shift.resize(static_cast<std::size_t>(d));
  return std::optional<DiagonalMoments>(std::move(all).Take(shift));
}

}  // namespace

std::vector<double> DiagonalMoments::Skewness() const {
  std::vector<double> out(mean.size());
  const double n = static_cast<double>(count);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double ratio = m3[i] / m2[i] / std::sqrt(m2[i]) * std::sqrt(n);
    out[i] = m2[i] > 0 && std::isfinite(ratio) ? ratio : 0.0;
  }
  return out;
}

std::vector<double> DiagonalMoments::Kurtosis() const {
  std::vector<double> out(mean.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double ratio = m4[i] / m2[i] / m2[i] * static_cast<double>(count);
    out[i] = m2[i] > 0 && std::isfinite(ratio) ? std::max(1.0, ratio) : 3.0;
  }
  return out;
}

absl::StatusOr<std::optional<DiagonalMoments>> ReadDiagonalMoments(const SampleSource& source,
                                                                   int d, int threads) {
  const RowFile* file = source.row_file();
  if (file == nullptr || file->rows() == 0) return std::optional<DiagonalMoments>();
  return file->fits_float() ? Read<float>(*file, d, threads) : Read<double>(*file, d, threads);
}

}  // namespace mergeplan
