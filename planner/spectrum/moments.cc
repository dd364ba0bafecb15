#include "planner/spectrum/moments.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/join_moments.h"
#include "planner/spectrum/parallel.h"

namespace mergeplan {
namespace {

// Columns per task. They are part of the result's rounding, so they do not depend on the machine.
constexpr int kColumns = 96;
// Below this many multiplications per batch a thread costs more than it saves.
constexpr double kWorthAThread = 2e6;

constexpr std::ptrdiff_t kLine = 8;  // doubles in a line of the cache

std::ptrdiff_t UpTo(std::ptrdiff_t value, std::ptrdiff_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

int Pieces(int whole, int piece) { return (whole + piece - 1) / piece; }

// The first place that is a line of the cache.
double* AtLine(double* at) {
  const auto address = reinterpret_cast<std::uintptr_t>(at) / sizeof(double);
  return at + (kLine - static_cast<std::ptrdiff_t>(address % kLine)) % kLine;
}

}  // namespace

MomentAccumulator::MomentAccumulator(int dimensions, bool with_covariance, int threads,
                                     const Kernels& kernels)
    : kernels_(kernels),
      d_(dimensions),
      with_covariance_(with_covariance),
      threads_(ThreadCount(threads)),
      padded_(UpTo(dimensions, kernels.panel)),
      mean_(dimensions),
      m2_(dimensions),
      m3_(dimensions),
      m4_(dimensions),
      comoment_(with_covariance ? static_cast<std::size_t>(dimensions) * dimensions : 0) {}

void MomentAccumulator::Join(int count, int blocks, std::ptrdiff_t bridge_rows, double* bridges) {
  const std::ptrdiff_t panel = kernels_.panel;
  std::ptrdiff_t row = 0;
  for (int k = 0; k < blocks; ++k) {
    const std::size_t at = static_cast<std::size_t>(k) * static_cast<std::size_t>(d_);
    const double* mean = batch_.mean.data() + at;
    const double a = static_cast<double>(count_);
    const double b = std::min<double>(kPackedRows, count - k * static_cast<double>(kPackedRows));
    if (with_covariance_ && count_ > 0) {
      const double root = std::sqrt(a * (b / (a + b)));
      for (std::ptrdiff_t i = 0; i < padded_; ++i) {
        bridges[i / panel * panel * bridge_rows + row * panel + i % panel] =
            i < d_ ? root * (mean[i] - mean_[static_cast<std::size_t>(i)]) : 0.0;
      }
      ++row;
    }
    JoinMoments({mean_.data(), m2_.data(), m3_.data(), m4_.data()}, d_, a, b, mean,
                batch_.m2.data() + at, batch_.m3.data() + at, batch_.m4.data() + at);
    count_ += static_cast<std::int64_t>(b);
  }
}

// As many blocks at once as their bridges are rows of one.
template <typename T>
absl::Status MomentAccumulator::AddBatches(const T* samples, int count) {
  constexpr int kMost = kPackedRows * kPackedRows;
  for (int first = 0; first < count; first += kMost) {
    MP_RETURN_IF_ERROR(
        AddBatch(samples + std::ptrdiff_t{first} * d_, std::min(kMost, count - first)));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status MomentAccumulator::AddBatch(const T* samples, int count) {
  if (shift_.empty()) shift_.assign(samples, samples + d_);
  const std::ptrdiff_t d = d_;
  const int blocks = Pieces(count, kPackedRows);
  const std::ptrdiff_t bridge_rows = blocks - (count_ > 0 ? 0 : 1);
  const std::ptrdiff_t bridges_at = UpTo(count * padded_, kLine);
  const std::size_t moments = static_cast<std::size_t>(blocks * d);
  if (batch_.mean.size() < moments) {
    for (std::vector<double>* of : {&batch_.mean, &batch_.m2, &batch_.m3, &batch_.m4}) {
      of->resize(moments);
    }
  }
  if (with_covariance_) {
    const auto size = static_cast<std::size_t>(bridges_at + bridge_rows * padded_ + kLine);
    if (room_for_packed_.size() < size) room_for_packed_.resize(size);
  }

  double* const packed = with_covariance_ ? AtLine(room_for_packed_.data()) : nullptr;
  const double work = static_cast<double>(count) * static_cast<double>(d) *
                      (with_covariance_ ? static_cast<double>(d) : 8.0);
  const int threads = work < kWorthAThread ? 1 : threads_;
  const auto rows_of = [&](int block) {
    return std::min<std::ptrdiff_t>(kPackedRows, count - block * kPackedRows);
  };
  const auto block_at = [&](int block) { return packed + block * kPackedRows * padded_; };
  MP_RETURN_IF_ERROR(ParallelFor(blocks, threads, [&](int k) {
    const auto moments_of = [&]() {
      if constexpr (sizeof(T) == sizeof(float))
        return kernels_.moments_f32;
      else
        return kernels_.moments_f64;
    }();
    moments_of(samples + k * kPackedRows * d, rows_of(k), d, shift_.data(),
               packed == nullptr ? nullptr : block_at(k), batch_.mean.data() + k * d,
               batch_.m2.data() + k * d, batch_.m3.data() + k * d, batch_.m4.data() + k * d);
    return true;
  }));
  for (std::size_t i = 0; i < moments; ++i) {
    if (std::isfinite(batch_.mean[i])) continue;
    const std::int64_t first = count_ + static_cast<std::int64_t>(i) / d * kPackedRows;
    return absl::InvalidArgumentError(absl::StrCat(
        "samples ", first, " to ",
        first + rows_of(static_cast<int>(i / static_cast<std::size_t>(d))) - 1,
        " hold a value that is not finite, in dimension ", static_cast<std::int64_t>(i) % d));
  }
  double* const bridges = packed == nullptr ? nullptr : packed + bridges_at;
  Join(count, blocks, bridge_rows, bridges);
  if (!with_covariance_) return absl::OkStatus();
  return ParallelFor(Pieces(d_, kColumns), threads, [&](int task) {
    const int first = task * kColumns, last = std::min(d_, first + kColumns);
    for (int k = 0; k < blocks; ++k) {
      kernels_.rank_update(block_at(k), rows_of(k), d, first, last, comoment_.data());
    }
    if (bridge_rows > 0) {
      kernels_.rank_update(bridges, bridge_rows, d, first, last, comoment_.data());
    }
    return true;
  });
}

absl::Status MomentAccumulator::Add(absl::Span<const float> samples, int count) {
  return AddBatches(samples.data(), count);
}

absl::Status MomentAccumulator::Add(absl::Span<const double> samples, int count) {
  return AddBatches(samples.data(), count);
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
