#include "planner/spectrum/bootstrap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "planner/base/philox.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/parallel.h"

namespace mergeplan {
namespace {

constexpr int kColumns = 64;  // per task

// P(X <= k) 2^32 of Poisson(1), k = 0, 1, ..; what is left beyond is below 2^-32.
std::array<double, 13> Thresholds() {
  std::array<double, 13> out{};
  double term = std::exp(-1.0), sum = 0;
  for (std::size_t k = 0; k < out.size(); ++k) {
    sum += term;
    out[k] = sum * 4294967296.0;
    term /= static_cast<double>(k + 1);
  }
  return out;
}

}  // namespace

void PoissonWeights(std::uint64_t seed, std::int64_t first, int count, int replicates,
                    double* weights) {
  static const std::array<double, 13> thresholds = Thresholds();
  const PhiloxKey key = {
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  for (int r = 0; r < count; ++r) {
    const std::uint64_t sample = static_cast<std::uint64_t>(first + r);
    for (int b = 0; b < replicates; b += 4) {
      const PhiloxWords words =
          Philox({{static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(sample >> 32),
                   static_cast<std::uint32_t>(b / 4), 0x626F6F74u}},
                 key);
      for (int k = 0; k < 4 && b + k < replicates; ++k) {
        int weight = 0;
        while (weight < 12 && words.w[k] >= thresholds[static_cast<std::size_t>(weight)]) ++weight;
        *weights++ = weight;
      }
    }
  }
}

VarianceBootstrap::VarianceBootstrap(int dimensions, int replicates, const Kernels& kernels,
                                     int threads)
    : d_(dimensions),
      replicates_(replicates),
      kernels_(kernels),
      threads_(ThreadCount(threads)),
      count_(static_cast<std::size_t>(replicates)),
      sum_(static_cast<std::size_t>(replicates) * dimensions),
      square_(sum_.size()) {}

absl::Status VarianceBootstrap::Add(absl::Span<const double> rows, absl::Span<const double> weights,
                                    int count) {
  squares_.resize(rows.size());
  for (std::size_t k = 0; k < rows.size(); ++k) squares_[k] = rows[k] * rows[k];
  const std::size_t b = static_cast<std::size_t>(replicates_);
  for (std::size_t k = 0; k < static_cast<std::size_t>(count) * b; ++k) count_[k % b] += weights[k];
  return ParallelFor((d_ + kColumns - 1) / kColumns, threads_, [&](int task) {
    const int first = task * kColumns, last = std::min(d_, first + kColumns);
    return kernels_.accumulate(weights.data(), rows.data(), count, replicates_, d_, first, last,
                               sum_.data()) &&
           kernels_.accumulate(weights.data(), squares_.data(), count, replicates_, d_, first, last,
                               square_.data());
  });
}

std::vector<double> VarianceBootstrap::LogErrors() const {
  std::vector<double> errors(static_cast<std::size_t>(d_));
  for (std::size_t i = 0; i < errors.size(); ++i) {
    double n = 0, mean = 0, spread = 0;
    for (std::size_t b = 0; b < count_.size(); ++b) {
      if (!(count_[b] > 1)) continue;
      const double s = sum_[b * errors.size() + i], q = square_[b * errors.size() + i];
      const double variance = (q - s * s / count_[b]) / (count_[b] - 1);
      if (!(variance > 0)) continue;
      const double x = std::log(variance), delta = x - mean;
      mean += delta / ++n;
      spread += delta * (x - mean);
    }
    errors[i] = n >= 2 ? std::sqrt(spread / (n - 1)) : std::numeric_limits<double>::infinity();
  }
  return errors;
}

}  // namespace mergeplan
