#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {

// How samples divide into channels: the first axis of [C, H, W], the second of [T, C, H, W], every
// value of [d], one channel of [H, W].
struct ChannelLayout {
  std::int64_t channels = 1;
  std::int64_t before = 1;  // frames, outside the channel
  std::int64_t after = 1;   // positions inside it
  // The values of each channel in one sample.
  std::int64_t values() const { return before * after; }
  std::int64_t ChannelOf(std::int64_t dimension) const { return dimension / after % channels; }
};
ChannelLayout ChannelsOf(absl::Span<const std::int64_t> shape);

// Mean and standard deviation over samples, frames and positions, with what their standard errors
// are. Values of one sample are not independent, so a channel of N samples with P values each is
// worth fewer than N P: `effective` is the number of independent values with the same error of the
// mean.
struct ChannelStatistics {
  double mean = 0, mean_error = 0;
  double deviation = 0, deviation_error = 0;  // the square root of the unbiased pooled variance
  double effective = 0;                       // N P at most of values that are not anticorrelated
};

// What turns the data into data of mean 0 and variance 1, in the names of diffusers' VAE
// configurations: (x - latents_mean[c]) / latents_std[c] channel by channel, or
// (x - shift_factor) * scaling_factor for all values alike, or x * scaling_factor_uncentred (the
// oldest form, which leaves the mean where it is).
struct ChannelReport {
  std::vector<ChannelStatistics> channels;
  ChannelStatistics all;
  double scaling_factor = 0, scaling_factor_error = 0;  // 0: the data has no variance
  double shift_factor = 0, shift_factor_error = 0;
  double scaling_factor_uncentred = 0;  // 1 / root of the mean square
  // How deviation_error was made: "gaussian" (from the covariance, as if the data were normal),
  // "fourth-moment", or "none": without the covariance no error is known, and all are NaN.
  std::string interval = "gaussian";
};

// From the spectrum's mean and covariance, which hold all that is needed: variance of a channel =
// mean variance of its values + spread of their means. Errors are those of independent samples;
// that of the deviation takes the data for normal. O(d^2). INVALID_ARGUMENT where the spectrum has
// fewer than 2 samples (a mixture's has none).
absl::StatusOr<ChannelReport> DescribeChannels(const Spectrum& spectrum);

// The same with errors of the deviations that hold for any distribution: sums of every sample's
// values and squares, channel by channel, collected while the samples stream by. Where every value
// is a channel they are known from the spectrum's kurtosis, and only those of all values are
// collected. Sums do not depend on the number of threads.
class ChannelAccumulator {
 public:
  explicit ChannelAccumulator(absl::Span<const std::int64_t> shape, int threads = 1);
  // count x d values as stored.
  void Add(absl::Span<const float> rows, int count);
  void Add(absl::Span<const double> rows, int count);
  // Replaces the errors in the report of `spectrum`, which is of the same data, by those measured.
  void Correct(const Spectrum& spectrum, ChannelReport& report) const;

 private:
  // Of one channel, or all (the last): over the samples, of s = mean of the values, q = mean of
  // their squares, both about `shift`: sums of s, q, s^2, s q, q^2.
  struct Sums {
    double s = 0, q = 0, ss = 0, sq = 0, qq = 0;

    void Add(double a, double b) {
      s += a;
      q += b;
      ss += a * a;
      sq += a * b;
      qq += b * b;
    }
  };
  // Sums of values and of their squares about a shift, of one sample.
  struct Powers {
    double sum = 0, square = 0;
  };
  template <typename T>
  void AddRows(const T* rows, int count);
  template <typename T>
  void SetShift(const T* rows, int count);
  // Of the samples first .. last - 1 into `powers_`.
  template <typename T>
  void Measure(const T* rows, int first, int last);

  ChannelLayout layout_;
  std::int64_t d_ = 1;
  int threads_;
  // Channels that are measured one by one; 1 where every value is one: then all together.
  std::size_t measured_;
  std::int64_t count_ = 0;
  std::vector<double> shift_;   // per measured channel, and of all
  std::vector<Powers> powers_;  // of the current batch: count x measured
  std::vector<Sums> sums_;      // per measured channel, and of all
};

}  // namespace mergeplan
