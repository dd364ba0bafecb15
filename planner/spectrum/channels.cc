#include "planner/spectrum/channels.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "planner/base/clones.h"
#include "planner/spectrum/parallel.h"

namespace mergeplan {
namespace {

// The variances of one group of values, from sums over pairs of its dimensions.
struct Group {
  std::int64_t values = 0;  // dimensions in it
  double mean = 0;          // of their means
  double spread = 0;        // sum of squared deviations of their means
  double within = 0;        // sum of their variances
  double pairs = 0;         // sum of the covariances of all pairs
  double turned = 0;        // sum of c_ij ((mu_i - m)(mu_j - m)): pull of unequal means
  double squares = 0;       // sum of the squared covariances
};

ChannelStatistics Describe(const Group& g, double n) {
  ChannelStatistics out;
  const double p = static_cast<double>(g.values);
  out.mean = g.mean;
  out.mean_error = std::sqrt(std::max(0.0, g.pairs) / n) / p;
  const double variance = ((n - 1) * g.within + n * g.spread) / (n * p - 1);
  out.deviation = std::sqrt(std::max(0.0, variance));
  // Variance over samples of the mean of (x - m)^2: 2 c_ij^2 + 4 c_ij a_i a_j for normal data with
  // the offsets a. The error of the estimated m is of higher order.
  const double of_square = (2 * g.squares + 4 * g.turned) / (p * p * n);
  out.deviation_error =
      out.deviation > 0 ? std::sqrt(std::max(0.0, of_square)) / (2 * out.deviation) : 0;
  // Without variance of the mean there is no telling; every value counts then.
  const double error = out.mean_error * out.mean_error;
  const double mean_variance = g.within / p;
  out.effective = error > 0 ? mean_variance / error : n * p;
  return out;
}

void SetFactors(ChannelReport& report) {
  const ChannelStatistics& all = report.all;
  report.shift_factor = all.mean;
  report.shift_factor_error = all.mean_error;
  report.scaling_factor = all.deviation > 0 ? 1 / all.deviation : 0;
  report.scaling_factor_error =
      all.deviation > 0 ? all.deviation_error / all.deviation / all.deviation : 0;
  const double root = std::hypot(all.deviation, all.mean);
  report.scaling_factor_uncentred = root > 0 ? 1 / root : 0;
}

// Adds the sums of so many values and of their squares, both about the shift.
#define MP_SUM_POWERS(T)                                                                     \
  MP_CLONES void SumPowers(const T* values, std::size_t count, double shift, double& to_sum, \
                           double& to_square) {                                              \
    constexpr std::size_t kLanes = 16;                                                       \
    double sum[kLanes] = {}, square[kLanes] = {};                                            \
    std::size_t i = 0;                                                                       \
    for (; i + kLanes <= count; i += kLanes) {                                               \
      for (std::size_t k = 0; k < kLanes; ++k) {                                             \
        const double x = static_cast<double>(values[i + k]) - shift;                         \
        sum[k] += x;                                                                         \
        square[k] += x * x;                                                                  \
      }                                                                                      \
    }                                                                                        \
    for (; i < count; ++i) {                                                                 \
      const double x = static_cast<double>(values[i]) - shift;                               \
      to_sum += x;                                                                           \
      to_square += x * x;                                                                    \
    }                                                                                        \
    for (std::size_t k = 0; k < kLanes; ++k) {                                               \
      to_sum += sum[k];                                                                      \
      to_square += square[k];                                                                \
    }                                                                                        \
  }
MP_SUM_POWERS(float)
MP_SUM_POWERS(double)

}  // namespace

ChannelLayout ChannelsOf(absl::Span<const std::int64_t> shape) {
  ChannelLayout out;
  if (shape.size() == 2) {
    out.after = shape[0] * shape[1];
    return out;
  }
  const std::size_t axis = shape.size() == 4 ? 1 : 0;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    (k < axis ? out.before : k == axis ? out.channels : out.after) *= shape[k];
  }
  return out;
}

absl::StatusOr<ChannelReport> DescribeChannels(const Spectrum& spectrum) {
  if (spectrum.samples < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("the spectrum is of ", spectrum.samples,
                     " samples, expected at least 2: channel statistics are of data"));
  }
  const ChannelLayout layout = ChannelsOf(spectrum.shape);
  const std::size_t channels = static_cast<std::size_t>(layout.channels);
  const std::size_t d = spectrum.mean.size();
  std::vector<Group> groups(channels + 1);  // the last: all values
  std::vector<std::size_t> group_of(d);
  for (std::size_t i = 0; i < d; ++i) {
    group_of[i] = static_cast<std::size_t>(layout.ChannelOf(static_cast<std::int64_t>(i)));
    for (Group* g : {&groups[group_of[i]], &groups[channels]}) {
      ++g->values;
      g->mean += spectrum.mean[i];
    }
  }
  for (Group& g : groups) g.mean /= static_cast<double>(g.values);
  Group& all = groups[channels];
  for (std::size_t i = 0; i < d; ++i) {
    Group& own = groups[group_of[i]];
    const double a = spectrum.mean[i] - own.mean, b = spectrum.mean[i] - all.mean;
    own.spread += a * a;
    own.within += spectrum.diagonal.variances[i];
    all.spread += b * b;
    all.within += spectrum.diagonal.variances[i];
    if (!spectrum.has_covariance()) continue;
    const double* row = spectrum.covariance.data() + i * d;
    for (std::size_t j = 0; j < d; ++j) {
      all.pairs += row[j];
      all.squares += row[j] * row[j];
      all.turned += row[j] * b * (spectrum.mean[j] - all.mean);
      if (group_of[j] != group_of[i]) continue;
      own.pairs += row[j];
      own.squares += row[j] * row[j];
      own.turned += row[j] * a * (spectrum.mean[j] - own.mean);
    }
  }
  ChannelReport report;
  const double n = static_cast<double>(spectrum.samples);
  for (std::size_t c = 0; c < channels; ++c) report.channels.push_back(Describe(groups[c], n));
  report.all = Describe(all, n);
  if (!spectrum.has_covariance()) {
    report.interval = "none";
    const auto forget = [](ChannelStatistics& s) {
      s.mean_error = s.deviation_error = s.effective = std::numeric_limits<double>::quiet_NaN();
    };
    std::for_each(report.channels.begin(), report.channels.end(), forget);
    forget(report.all);
  }
  SetFactors(report);
  return report;
}

ChannelAccumulator::ChannelAccumulator(absl::Span<const std::int64_t> shape, int threads)
    : layout_(ChannelsOf(shape)),
      d_(layout_.channels * layout_.values()),
      threads_(ThreadCount(threads)),
      measured_(layout_.values() == 1 ? 1 : static_cast<std::size_t>(layout_.channels)),
      sums_(measured_ + 1) {}

// The mean of the first batch: squares about it lose no digits to a common offset.
template <typename T>
void ChannelAccumulator::SetShift(const T* rows, int count) {
  const std::size_t d = static_cast<std::size_t>(d_);
  const std::size_t piece = d / measured_ / static_cast<std::size_t>(layout_.before);
  shift_.assign(measured_ + 1, 0);
  for (int r = 0; r < count; ++r) {
    const T* row = rows + static_cast<std::size_t>(r) * d;
    for (std::size_t begin = 0; begin < d; begin += piece) {
      double sum = 0, square = 0;
      SumPowers(row + begin, piece, 0, sum, square);
      shift_[begin / piece % measured_] += sum / static_cast<double>(d / measured_) / count;
      shift_[measured_] += sum / static_cast<double>(d) / count;
    }
  }
}

template <typename T>
void ChannelAccumulator::Measure(const T* rows, int first, int last) {
  const std::size_t d = static_cast<std::size_t>(d_);
  const std::size_t piece = d / measured_ / static_cast<std::size_t>(layout_.before);
  for (int r = first; r < last; ++r) {
    const T* row = rows + static_cast<std::size_t>(r) * d;
    Powers* out = powers_.data() + static_cast<std::size_t>(r) * measured_;
    std::fill(out, out + measured_, Powers());
    for (std::size_t begin = 0; begin < d; begin += piece) {
      const std::size_t c = begin / piece % measured_;
      SumPowers(row + begin, piece, shift_[c], out[c].sum, out[c].square);
    }
  }
}

template <typename T>
void ChannelAccumulator::AddRows(const T* rows, int count) {
  constexpr int kRows = 128;
  if (count < 1 || d_ < 1) return;
  if (shift_.empty()) SetShift(rows, count);
  powers_.resize(static_cast<std::size_t>(count) * measured_);
  // Never fails: nothing is allocated.
  ParallelFor((count + kRows - 1) / kRows, threads_, [&](int task) {
    Measure(rows, task * kRows, std::min(count, (task + 1) * kRows));
    return true;
  }).IgnoreError();
  const double values = static_cast<double>(d_) / static_cast<double>(measured_);
  for (int r = 0; r < count; ++r) {
    const Powers* of = powers_.data() + static_cast<std::size_t>(r) * measured_;
    // About the common shift: (x - common) = (x - shift) + move.
    double sum = 0, square = 0;
    for (std::size_t c = 0; c < measured_; ++c) {
      const double move = shift_[c] - shift_[measured_];
      sum += of[c].sum + values * move;
      square += of[c].square + 2 * move * of[c].sum + values * move * move;
      sums_[c].Add(of[c].sum / values, of[c].square / values);
    }
    sums_[measured_].Add(sum / static_cast<double>(d_), square / static_cast<double>(d_));
  }
  count_ += count;
}

void ChannelAccumulator::Add(absl::Span<const float> rows, int count) {
  AddRows(rows.data(), count);
}
void ChannelAccumulator::Add(absl::Span<const double> rows, int count) {
  AddRows(rows.data(), count);
}

void ChannelAccumulator::Correct(const Spectrum& spectrum, ChannelReport& report) const {
  if (count_ < 2) return;
  const double n = static_cast<double>(count_);
  const double multiply = spectrum.scaling.multiply * spectrum.scaling.multiply;
  const auto correct = [&](const Sums& sums, ChannelStatistics& out) {
    if (!(out.deviation > 0)) return;
    // (x - m)^2 = (x - shift)^2 - 2 t (x - shift) + t^2 with t = m - shift.
    const double t = sums.s / n;
    const double vs = (sums.ss - n * t * t) / (n - 1);
    const double csq = (sums.sq - t * sums.q) / (n - 1);
    const double vq = (sums.qq - sums.q * sums.q / n) / (n - 1);
    const double of_square = std::max(0.0, vq - 4 * t * csq + 4 * t * t * vs);
    // The mean is estimated, too: its square varies by 2 mean_error^4, which is all there is to see
    // where the squares of two samples are equal.
    const double of_mean = 2 * std::pow(out.mean_error, 4);
    out.deviation_error =
        std::sqrt(of_square / n * multiply * multiply + of_mean) / (2 * out.deviation);
  };
  correct(sums_.back(), report.all);
  for (std::size_t c = 0; c < report.channels.size(); ++c) {
    ChannelStatistics& out = report.channels[c];
    if (layout_.values() > 1) {
      correct(sums_[c], out);
    } else if (out.deviation > 0) {
      // The same for one value: the variance over samples of (x - m)^2 is (kurtosis - 1) times
      // the square of its variance, here with n - 1 below the line.
      const double above = std::max(0.0, spectrum.diagonal.kurtosis[c] - 1) * (n - 1) / n + 2 / n;
      out.deviation_error = out.deviation * std::sqrt(above / n) / 2;
    }
  }
  report.interval = "fourth-moment";
  SetFactors(report);
}

}  // namespace mergeplan
