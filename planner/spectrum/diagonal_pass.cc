#include "planner/spectrum/diagonal_pass.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <utility>

#include "planner/base/clones.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/join_moments.h"
#include "planner/spectrum/parallel.h"

namespace mergeplan {
namespace {

// Values, and rows, that have sums of their own, about the first row among them; values of a strip,
// which the processor's caches hold beside the next one; columns of a strip. All are part of the
// result's rounding, so they do not depend on the machine.
constexpr std::int64_t kBlockValues = std::int64_t{1} << 16;
constexpr std::ptrdiff_t kBlockRows = 256;
constexpr std::ptrdiff_t kStripValues = std::ptrdiff_t{1} << 15;
constexpr std::ptrdiff_t kColumns = 2048;
constexpr std::int64_t kBlocksInTask = 64;
constexpr int kTasksAtOnce = 16;  // whose results are held, then added in their order
// Few dimensions stand side by side until there are so many columns, of which groups of kGroup are
// summed fastest.
constexpr std::ptrdiff_t kFewColumns = 64, kGroup = 16;
// Not part of the result: bytes of a file that are mapped at once.
constexpr std::int64_t kWindow = std::int64_t{8} << 20;

void AddPowers(const Kernels& kernels, const float* rows, std::ptrdiff_t count,
               std::ptrdiff_t stride, std::ptrdiff_t width, const float* about, double* sums) {
  kernels.add_powers_f32(rows, count, stride, width, about, sums);
}
void AddPowers(const Kernels& kernels, const double* rows, std::ptrdiff_t count,
               std::ptrdiff_t stride, std::ptrdiff_t width, const double* about, double* sums) {
  kernels.add_powers_f64(rows, count, stride, width, about, sums);
}

// JoinMoments for `count` samples of which the sums of powers about one of them are known: four
// runs of numbers, `run` apart.
//
// Turning to powers about the mean loses little whatever the samples are: the one that the sums are
// about is itself d away from their mean, so that m2 >= d^2 and m4 >= d^4, while what cancels is at
// most count d^2 in the one and some count d^4 in the other. With kBlockRows samples that is two
// digits at worst, where the first of a block is like no other; else none.
#define MP_JOIN_POWERS(T)                                                                          \
  MP_CLONES void JoinPowers(const GrowingMoments& to, std::ptrdiff_t width, double before,         \
                            double count, const T* about, const double* shift, const double* sums, \
                            std::ptrdiff_t run) {                                                  \
    const double n = before + count, fa = before / n, fb = count / n;                              \
    const double *second = sums + run, *third = second + run, *fourth = third + run;               \
    _Pragma("GCC ivdep") for (std::ptrdiff_t i = 0; i < width; ++i) {                              \
      const double s1 = sums[i], s2 = second[i], s3 = third[i], d = s1 / count;                    \
      JoinMoment(to, i, before, fa, fb, (static_cast<double>(about[i]) - shift[i]) + d,            \
                 s2 - d * s1, s3 - d * (3 * s2 - 2 * d * s1),                                      \
                 fourth[i] - d * (4 * s3 - d * (6 * s2 - 3 * d * s1)));                            \
    }                                                                                              \
  }
MP_JOIN_POWERS(float)
MP_JOIN_POWERS(double)

// Sums of a growing set; means are relative to the shift.
class Sums {
 public:
  explicit Sums(std::size_t d) : mean_(d), m2_(d), m3_(d), m4_(d) {}

  void Add(const Sums& other) {
    JoinMoments(From(0), Width(), static_cast<double>(count_), static_cast<double>(other.count_),
                other.mean_.data(), other.m2_.data(), other.m3_.data(), other.m4_.data());
    count_ += other.count_;
  }
  // `rows` (count x d). Samples of few dimensions stand side by side as one of many, so that the
  // inner loops are long.
  template <typename T>
  void AddRows(const Kernels& kernels, const T* rows, std::int64_t count,
               const std::vector<double>& shift) {
    const std::ptrdiff_t d = Width();
    std::ptrdiff_t fold = 1;
    if (d < kFewColumns) {
      const std::ptrdiff_t whole = kGroup / std::gcd(kGroup, d);
      fold = std::min<std::ptrdiff_t>((kFewColumns / d + whole - 1) / whole * whole, count);
    }
    const std::ptrdiff_t width = fold * d, folded = count / fold, rest = count - folded * fold;
    for (std::ptrdiff_t r = 0; r < folded; r += kBlockRows) {
      Fold(kernels, rows + r * width, std::min(kBlockRows, folded - r), width, shift);
    }
    if (rest > 0) Fold(kernels, rows + folded * width, 1, rest * d, shift);
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
  std::ptrdiff_t Width() const { return static_cast<std::ptrdiff_t>(mean_.size()); }
  GrowingMoments From(std::ptrdiff_t i) {
    return {mean_.data() + i, m2_.data() + i, m3_.data() + i, m4_.data() + i};
  }

  // `count` rows of `width` columns, of which every d-th is of one dimension.
  template <typename T>
  void Fold(const Kernels& kernels, const T* rows, std::ptrdiff_t count, std::ptrdiff_t width,
            const std::vector<double>& shift) {
    const std::ptrdiff_t d = Width();
    double sums[4 * kColumns];
    for (std::ptrdiff_t begin = 0; begin < width; begin += kColumns) {
      const std::ptrdiff_t now = std::min(kColumns, width - begin);
      const std::ptrdiff_t strip = std::max<std::ptrdiff_t>(1, kStripValues / now);
      std::fill(sums, sums + 4 * now, 0.0);
      for (std::ptrdiff_t r = 0; r < count; r += strip) {
        AddPowers(kernels, rows + r * width + begin, std::min(strip, count - r), width, now,
                  rows + begin, sums);
      }
      // Folded rows are narrower than kColumns: whole samples, one after the other.
      const std::ptrdiff_t some = std::min(d, now);
      for (std::ptrdiff_t c = 0; c < now; c += some) {
        const std::ptrdiff_t i = (begin + c) % d, copy = (begin + c) / d;
        JoinPowers(From(i), some, static_cast<double>(count_ + copy * count),
                   static_cast<double>(count), rows + begin + c, shift.data() + i, sums + c, now);
      }
    }
    count_ += count * (width / d);
  }

  std::int64_t count_ = 0;
  std::vector<double> mean_, m2_, m3_, m4_;
};

// Adds rows [begin, end), in place where the file can be mapped.
template <typename T>
absl::Status AddRowsOf(const RowFile& file, std::int64_t begin, std::int64_t end,
                       std::int64_t block, const Kernels& kernels, const std::vector<double>& shift,
                       Sums& sums) {
  const std::int64_t d = static_cast<std::int64_t>(shift.size());
  const std::int64_t bytes = block * d * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t in_window = block * std::max<std::int64_t>(1, kWindow / bytes);
  std::vector<T> copy;
  for (std::int64_t first = begin; first < end; first += in_window) {
    const std::int64_t rows = std::min(in_window, end - first);
    const std::unique_ptr<FileWindow> window = file.View<T>(first, rows);
    for (std::int64_t r = 0; r < rows; r += block) {
      const std::int64_t count = std::min(block, rows - r);
      const T* values = nullptr;
      if (window) {
        values = reinterpret_cast<const T*>(window->data()) + r * d;
      } else {
        copy.resize(static_cast<std::size_t>(block * d));
        MP_RETURN_IF_ERROR(file.Read(first + r, count, copy.data()));
        values = copy.data();
      }
      sums.AddRows(kernels, values, count, shift);
    }
    if (!window || window->Whole()) continue;
    // Reading says what is missing.
    copy.resize(static_cast<std::size_t>(block * d));
    for (std::int64_t r = 0; r < rows; r += block) {
      MP_RETURN_IF_ERROR(file.Read(first + r, std::min(block, rows - r), copy.data()));
    }
    return absl::DataLossError("the file changed while it was read; run it again");
  }
  return absl::OkStatus();
}

template <typename T>
absl::StatusOr<std::optional<DiagonalMoments>> Read(const RowFile& file, int d, int threads,
                                                    const Kernels& kernels) {
  const std::int64_t n = file.rows();
  std::vector<double> shift(static_cast<std::size_t>(d));
  MP_RETURN_IF_ERROR(file.Read(0, 1, shift.data()));
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
        const std::int64_t begin = (done + task) * in_task;
        const absl::Status added =
            AddRowsOf<T>(file, begin, std::min(n, begin + in_task), block, kernels, shift,
                         parts[static_cast<std::size_t>(task)]);
        if (!added.ok()) {
          const std::lock_guard<std::mutex> lock(mutex);
          failed = added;
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
                                                                   int d, int threads,
                                                                   const Kernels& kernels) {
  const RowFile* file = source.row_file();
  if (file == nullptr || file->rows() == 0) return std::optional<DiagonalMoments>();
  return file->fits_float() ? Read<float>(*file, d, threads, kernels)
                            : Read<double>(*file, d, threads, kernels);
}

}  // namespace mergeplan
