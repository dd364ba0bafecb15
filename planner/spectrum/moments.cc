#include "planner/spectrum/moments.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/parallel.h"

namespace mergeplan {
namespace {

// Columns per task. They are part of the result's rounding, so they do not depend on the machine.
constexpr int kColumns = 96;
// Below this many multiplications per batch a thread costs more than it saves.
constexpr double kWorthAThread = 2e6;

constexpr std::size_t kLine = 8;  // doubles in a line of the cache

int Pieces(int whole, int piece) { return (whole + piece - 1) / piece; }

// Where the value of a packed batch stands (kernels.h); `padded` is the number of columns, filled
// up to whole panels.
std::size_t PackedIndex(std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t rows,
                        std::ptrdiff_t padded, std::ptrdiff_t panel) {
  const std::ptrdiff_t first = row / kPackedRows * kPackedRows;
  const std::ptrdiff_t height = std::min(kPackedRows, rows - first);
  return static_cast<std::size_t>(first * padded + column / panel * panel * height +
                                  (row - first) * panel + column % panel);
}

}  // namespace

MomentAccumulator::MomentAccumulator(int dimensions, bool with_covariance, int threads,
                                     const Kernels& kernels)
    : kernels_(kernels),
      d_(dimensions),
      with_covariance_(with_covariance),
      threads_(ThreadCount(threads)),
      mean_(dimensions),
      m2_(dimensions),
      m3_(dimensions),
      m4_(dimensions),
      comoment_(with_covariance ? static_cast<std::size_t>(dimensions) * dimensions : 0),
      batch_mean_(dimensions),
      batch_m2_(dimensions),
      batch_m3_(dimensions),
      batch_m4_(dimensions) {}

double* MomentAccumulator::Packed() {
  const auto address = reinterpret_cast<std::uintptr_t>(room_for_packed_.data());
  return room_for_packed_.data() + (kLine - address / sizeof(double) % kLine) % kLine;
}

absl::Status MomentAccumulator::Add(absl::Span<const double> samples, int count) {
  if (shift_.empty()) shift_.assign(samples.begin(), samples.begin() + d_);
  const std::size_t used = static_cast<std::size_t>(count) * d_;
  // The bridge between the mean of what came before and that of the batch is one more row.
  const std::ptrdiff_t rows = count + (count_ > 0 ? 1 : 0);
  const std::ptrdiff_t panel = kernels_.panel, padded = (d_ + panel - 1) / panel * panel;
  if (with_covariance_) {
    const std::size_t size = static_cast<std::size_t>((count + 1) * padded) + kLine;
    if (room_for_packed_.size() < size) room_for_packed_.resize(size);
  }

  double* const packed = Packed();
  const double work = static_cast<double>(used) * (with_covariance_ ? d_ : 8);
  const int threads = work < kWorthAThread ? 1 : threads_;
  MP_RETURN_IF_ERROR(ParallelFor(Pieces(d_, kColumns), threads, [&](int task) {
    const int first = task * kColumns;
    kernels_.moments(samples.data(), count, d_, shift_.data(), first,
                     std::min(d_, first + kColumns), rows, with_covariance_ ? packed : nullptr,
                     batch_mean_.data(), batch_m2_.data(), batch_m3_.data(), batch_m4_.data());
    return true;
  }));
  for (int i = 0; i < d_; ++i) {
    if (!std::isfinite(batch_mean_[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("samples ", count_, " to ", count_ + count - 1,
                       " hold a value that is not finite, in dimension ", i));
    }
  }

  const double a = static_cast<double>(count_), b = count, n = a + b;
  const double fa = a / n, fb = b / n;
  const bool bridged = with_covariance_ && count_ > 0;
  for (int i = 0; i < padded && bridged; ++i) {
    packed[PackedIndex(count, i, rows, padded, panel)] =
        i < d_ ? std::sqrt(a * fb) * (batch_mean_[i] - mean_[i]) : 0.0;
  }
  for (int i = 0; i < d_; ++i) {
    const double delta = batch_mean_[i] - mean_[i];
    const double square = delta * delta;
    // Fourth before third before second: each needs the old lower ones.
    m4_[i] += batch_m4_[i] + square * square * a * fb * (fa * fa - fa * fb + fb * fb) +
              6 * square * (fa * fa * batch_m2_[i] + fb * fb * m2_[i]) +
              4 * delta * (fa * batch_m3_[i] - fb * m3_[i]);
    m3_[i] += batch_m3_[i] + square * delta * a * fb * (fa - fb) +
              3 * delta * (fa * batch_m2_[i] - fb * m2_[i]);
    m2_[i] += batch_m2_[i] + square * a * fb;
    mean_[i] += delta * fb;
  }
  if (with_covariance_) {
    MP_RETURN_IF_ERROR(ParallelFor(Pieces(d_, kColumns), threads, [&](int task) {
      const int first = task * kColumns;
      kernels_.rank_update(packed, rows, d_, first, std::min(d_, first + kColumns),
                           comoment_.data());
      return true;
    }));
  }
  count_ += count;
  return absl::OkStatus();
}

std::vector<double> MomentAccumulator::Mean() const {
  std::vector<double> mean(mean_);
  for (int i = 0; i < d_ && !shift_.empty(); ++i) mean[i] += shift_[i];
  return mean;
}

std::vector<double> MomentAccumulator::Skewness() const {
  std::vector<double> skewness(d_);
  for (int i = 0; i < d_; ++i) {
    const double ratio =
        m3_[i] / m2_[i] / std::sqrt(m2_[i]) * std::sqrt(static_cast<double>(count_));
    skewness[i] = m2_[i] > 0 && std::isfinite(ratio) ? ratio : 0.0;
  }
  return skewness;
}

std::vector<double> MomentAccumulator::Kurtosis() const {
  std::vector<double> kurtosis(d_);
  for (int i = 0; i < d_; ++i) {
    // In this order: m2 * m2 could leave the range where the quotient does not.
    const double ratio = m4_[i] / m2_[i] / m2_[i] * static_cast<double>(count_);
    kurtosis[i] = m2_[i] > 0 && std::isfinite(ratio) ? std::max(1.0, ratio) : 3.0;
  }
  return kurtosis;
}

std::vector<double> MomentAccumulator::TakeCovariance() {
  constexpr int kBlock = 64;  // mirrored block by block, to stay in the cache
  const double divisor = static_cast<double>(count_ - 1);
  const std::size_t d = d_;
  for (std::size_t jb = 0; jb < d; jb += kBlock) {
    for (std::size_t ib = jb; ib < d; ib += kBlock) {
      for (std::size_t j = jb; j < std::min(d, jb + kBlock); ++j) {
        for (std::size_t i = std::max(ib, j); i < std::min(d, ib + kBlock); ++i) {
          const double value = comoment_[j * d + i] / divisor;
          comoment_[j * d + i] = value;
          comoment_[i * d + j] = value;
        }
      }
    }
  }
  return std::move(comoment_);
}

}  // namespace mergeplan
