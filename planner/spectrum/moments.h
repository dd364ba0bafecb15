#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "planner/spectrum/kernels.h"

namespace mergeplan {

// Mean, central moments up to the fourth and, if wanted, the full covariance of a stream of
// samples, in float64 whatever their number. Every block of kPackedRows samples is centred on its
// own mean (after the first sample has been taken off, which is exact where it matters) and joined
// to what came before by the pairwise formulas (join_moments.h), so that a large common offset
// costs no digits. Memory: d^2 doubles for the covariance, plus one centred batch. Time: n d^2
// multiplications and additions on `threads` threads; the result depends on the batches, not on the
// threads.
class MomentAccumulator {
 public:
  // `kernels` must outlive this object.
  MomentAccumulator(int dimensions, bool with_covariance, int threads, const Kernels& kernels);

  // Adds `count` >= 1 samples (count x d, row-major). INVALID_ARGUMENT, naming the dimension, where
  // a value is not finite; RESOURCE_EXHAUSTED when memory runs out. The object is of no use after
  // that.
  absl::Status Add(absl::Span<const float> samples, int count);
  absl::Status Add(absl::Span<const double> samples, int count);

  std::int64_t count() const { return count_; }
  std::vector<double> Mean() const;
  // Sums of the 2nd and 4th powers of the deviations from the mean, d each.
  const std::vector<double>& m2() const { return m2_; }
  const std::vector<double>& m4() const { return m4_; }
  // Skewness per dimension, sqrt(n) m3 / m2^(3/2) (0 for a Gaussian); 0 where m2 is 0.
  std::vector<double> Skewness() const;
  // Kurtosis per dimension, n m4 / m2^2 (3 for a Gaussian, never below 1); 3 where m2 is 0.
  std::vector<double> Kurtosis() const;
  // The unbiased covariance (divided by n - 1), d x d, symmetric bit by bit; count() >= 2. Its
  // storage leaves the object.
  std::vector<double> TakeCovariance();

 private:
  // Moments of blocks, one after the other: d of each a block.
  struct BlockMoments {
    std::vector<double> mean, m2, m3, m4;
  };

  template <typename T>
  absl::Status AddBatches(const T* samples, int count);
  template <typename T>
  absl::Status AddBatch(const T* samples, int count);
  // Joins the blocks of a batch, and leaves in `bridges` a packed block of what lies between their
  // means and those of what came before them: these are rows of the covariance's sum, too.
  void Join(int count, int blocks, std::ptrdiff_t bridge_rows, double* bridges);

  const Kernels& kernels_;
  const int d_;
  const bool with_covariance_;
  const int threads_;
  const std::ptrdiff_t padded_;  // d, rounded up to whole panels
  std::int64_t count_ = 0;
  std::vector<double> shift_;                // the first sample
  std::vector<double> mean_, m2_, m3_, m4_;  // mean_ is relative to shift_
  std::vector<double> comoment_;             // column-major, lower triangle
  std::vector<double> room_for_packed_;      // deviations of a batch and bridges, packed
  BlockMoments batch_;
};

}  // namespace mergeplan
