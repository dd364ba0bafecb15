// Channel statistics against plain sums over all values, and their errors against simulation.
#include "planner/spectrum/channels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "tests/planner/spectrum/estimates.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

struct Pooled {
  double mean = 0, deviation = 0;
};
// numpy's mean() and std(ddof=1) over the values of one channel; all of them where c < 0.
Pooled PoolPlainly(const std::vector<double>& values, const std::vector<std::int64_t>& shape,
                   int c) {
  const ChannelLayout layout = ChannelsOf(shape);
  const std::int64_t d = layout.channels * layout.values();
  long double sum = 0, square = 0;
  std::int64_t n = 0;
  for (int pass = 0; pass < 2; ++pass) {
    const long double mean = pass == 0 ? 0 : sum / n;
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (c >= 0 && layout.ChannelOf(static_cast<std::int64_t>(k) % d) != c) continue;
      if (pass == 0) ++n, sum += values[k];
      if (pass == 1) square += (values[k] - mean) * (values[k] - mean);
    }
  }
  return {static_cast<double>(sum / n), static_cast<double>(sqrtl(square / (n - 1)))};
}

TEST(ChannelsOf, KnowsTheAxis) {
  const auto layout = [](std::vector<std::int64_t> shape) { return ChannelsOf(shape); };
  EXPECT_EQ(layout({4, 8, 9}).channels, 4);
  EXPECT_EQ(layout({4, 8, 9}).values(), 72);
  EXPECT_EQ(layout({5, 4, 8, 9}).channels, 4);
  EXPECT_EQ(layout({5, 4, 8, 9}).values(), 360);
  EXPECT_EQ(layout({5, 4, 8, 9}).ChannelOf(72 * 4 + 71), 0);
  EXPECT_EQ(layout({5, 4, 8, 9}).ChannelOf(72 * 4 + 72), 1);
  EXPECT_EQ(layout({28, 28}).channels, 1);
  EXPECT_EQ(layout({7}).channels, 7);
  EXPECT_EQ(layout({}).channels, 1);
}

TEST(DescribeChannels, EqualsPlainSumsForPicturesAndVideo) {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{3, 2, 4}, {2, 3, 2, 2}, {4, 6}, {24}}) {
    for (const double offset : {0.0, 5.0, 1e6}) {
      std::vector<double> values = Correlated(300, 24, 0, 1.5, 21);
      for (std::size_t k = 0; k < values.size(); ++k) values[k] += offset + 0.3 * (k % 24);
      const auto spectrum = Estimate(values, shape);
      ASSERT_TRUE(spectrum.ok()) << spectrum.status();
      const auto report = DescribeChannels(*spectrum);
      ASSERT_TRUE(report.ok()) << report.status();
      const double tolerance = offset > 1e3 ? 1e-9 : 1e-12;
      const int channels = static_cast<int>(report->channels.size());
      EXPECT_EQ(channels, shape.size() == 2 ? 1 : shape.size() == 1 ? 24 : 3);
      for (int c = -1; c < channels; ++c) {
        const ChannelStatistics& found = c < 0 ? report->all : report->channels[c];
        const Pooled expected = PoolPlainly(values, shape, c);
        EXPECT_NEAR(found.mean, expected.mean, tolerance * (1 + std::abs(expected.mean)));
        EXPECT_NEAR(found.deviation / expected.deviation, 1, tolerance);
      }
      EXPECT_DOUBLE_EQ(report->scaling_factor, 1 / report->all.deviation);
      EXPECT_EQ(report->shift_factor, report->all.mean);
      EXPECT_NEAR(report->scaling_factor_uncentred,
                  1 / std::hypot(report->all.mean, report->all.deviation), 1e-15);
    }
  }
}

// Scaled by what the report says, data has mean 0 and standard deviation 1.
TEST(DescribeChannels, GivesTheFactorsThatMakeUnitVariance) {
  std::vector<double> values = Correlated(400, 12, 2, 3, 22);
  const std::vector<std::int64_t> shape = {3, 2, 2};
  const auto report = DescribeChannels(*Estimate(values, shape));
  ASSERT_TRUE(report.ok());
  std::vector<double> whole = values, channelwise = values;
  for (std::size_t k = 0; k < values.size(); ++k) {
    whole[k] = (values[k] - report->shift_factor) * report->scaling_factor;
    const ChannelStatistics& c = report->channels[k % 12 / 4];
    channelwise[k] = (values[k] - c.mean) / c.deviation;
  }
  EXPECT_NEAR(PoolPlainly(whole, shape, -1).mean, 0, 1e-13);
  EXPECT_NEAR(PoolPlainly(whole, shape, -1).deviation, 1, 1e-13);
  for (int c = 0; c < 3; ++c) {
    EXPECT_NEAR(PoolPlainly(channelwise, shape, c).mean, 0, 1e-13);
    EXPECT_NEAR(PoolPlainly(channelwise, shape, c).deviation, 1, 1e-13);
  }
}

// How often do mean and deviation lie within 1.96 of their errors? The positions of a channel share
// a common part, so that values of one sample are far from independent.
template <typename Draw>
void ExpectCoverage(Draw draw, bool measured) {
  constexpr int kRounds = 1000, kN = 400;
  const std::vector<std::int64_t> shape = {2, 2, 2};
  // Channel c is 1 + c + 0.5 (h + w) + (common + own) with variances 1 and 0.5.
  const double offsets = 0.125;  // variance of 0.5 (h + w) over the four positions
  std::mt19937_64 random(77);
  int mean = 0, deviation = 0, scaling = 0;
  const double all_variance = 1.5 + offsets + 0.25;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> values;
    for (int r = 0; r < kN; ++r) {
      for (int c = 0; c < 2; ++c) {
        const double common = draw(random);
        for (int p = 0; p < 4; ++p) {
          values.push_back(1 + c + 0.5 * (p / 2 + p % 2) + common + std::sqrt(0.5) * draw(random));
        }
      }
    }
    const auto spectrum = Estimate(values, shape);
    ASSERT_TRUE(spectrum.ok());
    auto report = *DescribeChannels(*spectrum);
    if (measured) {
      ChannelAccumulator sums(shape);
      sums.Add(absl::MakeConstSpan(values).subspan(0, 8 * 100), 100);
      sums.Add(absl::MakeConstSpan(values).subspan(8 * 100), kN - 100);
      sums.Correct(*spectrum, report);
    }
    const ChannelStatistics& c = report.channels[1];
    mean += std::abs(c.mean - 2.5) < 1.96 * c.mean_error;
    deviation += std::abs(c.deviation - std::sqrt(1.5 + offsets)) < 1.96 * c.deviation_error;
    scaling += std::abs(report.scaling_factor - 1 / std::sqrt(all_variance)) <
               1.96 * report.scaling_factor_error;
    if (round == 0) {
      EXPECT_EQ(report.interval, measured ? "fourth-moment" : "gaussian");
      // Worth 1.5 / (1 + 0.5 / 4) values a sample in place of 4.
      EXPECT_NEAR(c.effective / kN, 1.5 / 1.125, 0.08);
    }
  }
  std::printf("covered of %d: mean %d, deviation %d, scaling factor %d\n", kRounds, mean, deviation,
              scaling);
  for (const int covered : {mean, deviation, scaling}) {
    EXPECT_GE(covered, 922);  // 950 expected, standard deviation 6.9; four of them
    EXPECT_LE(covered, 978);
  }
}

TEST(DescribeChannels, ErrorsCoverForGaussianData) {
  ExpectCoverage(std::normal_distribution<double>(), false);
}
TEST(DescribeChannels, MeasuredErrorsCoverForAnyData) {
  ExpectCoverage(std::normal_distribution<double>(), true);
  const double edge = std::sqrt(3.0);
  ExpectCoverage(std::uniform_real_distribution<double>(-edge, edge), true);
}

// Error of the deviation by its definition: how the mean over a channel of (x - m)^2 varies between
// samples, and how the square of m does.
double DeviationError(const std::vector<double>& values, const std::vector<std::int64_t>& shape,
                      int c, const ChannelStatistics& found) {
  const ChannelLayout layout = ChannelsOf(shape);
  const std::size_t d = static_cast<std::size_t>(layout.channels * layout.values());
  std::vector<double> squares(values.size() / d);
  for (std::size_t r = 0; r < squares.size(); ++r) {
    int of = 0;
    for (std::size_t i = 0; i < d; ++i) {
      if (c >= 0 && layout.ChannelOf(static_cast<std::int64_t>(i)) != c) continue;
      squares[r] += std::pow(values[r * d + i] - found.mean, 2);
      ++of;
    }
    squares[r] /= of;
  }
  const Pooled pooled = PoolPlainly(squares, {}, -1);
  const double of_mean = 2 * std::pow(found.mean_error, 4);
  return std::sqrt(std::pow(pooled.deviation, 2) / static_cast<double>(squares.size()) + of_mean) /
         (2 * found.deviation);
}

// Two samples are as far from their mean as each other: their squares alone would say that the
// deviation is known exactly. The variance of normal data has the error sqrt(2) then.
TEST(DescribeChannels, OfTwoSamplesAreNotSure) {
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{3}, {1}, {3, 1, 1}}) {
    const std::size_t d = static_cast<std::size_t>(shape[0]);
    std::vector<double> rows;
    for (const double v : {1.0, 2.5}) rows.insert(rows.end(), d, v);
    const auto spectrum = Estimate(rows, shape);
    ASSERT_TRUE(spectrum.ok()) << spectrum.status();
    ChannelReport report = *DescribeChannels(*spectrum);
    ChannelAccumulator sums(shape);
    sums.Add(rows, 2);
    sums.Correct(*spectrum, report);
    for (const ChannelStatistics& s : report.channels) {
      EXPECT_NEAR(s.deviation_error / s.deviation, std::sqrt(0.5) / 2, 1e-12);
    }
    EXPECT_GT(report.all.deviation_error, 0.1);
    EXPECT_GT(report.scaling_factor_error, 0.1);
  }
}

TEST(DescribeChannels, MeasuredErrorsAreThoseOfTheirDefinition) {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{3, 2, 4}, {2, 3, 2, 2}, {4, 6}, {24}}) {
    for (const double offset : {0.0, 1e6}) {
      std::vector<double> values = Correlated(300, 24, 0, 1.5, 23);
      for (std::size_t k = 0; k < values.size(); ++k) {
        values[k] = offset + (1 + k % 24) * std::exp(0.5 * values[k]);
      }
      const auto spectrum = Estimate(values, shape);
      ASSERT_TRUE(spectrum.ok()) << spectrum.status();
      std::vector<ChannelReport> reports;
      for (const int threads : {1, 3}) {
        ChannelReport report = *DescribeChannels(*spectrum);
        ChannelAccumulator sums(shape, threads);
        sums.Add(absl::MakeConstSpan(values).subspan(0, 24 * 40), 40);
        sums.Add(absl::MakeConstSpan(values).subspan(24 * 40), 260);
        sums.Correct(*spectrum, report);
        reports.push_back(report);
      }
      const ChannelReport& report = reports[0];
      EXPECT_EQ(report.all.deviation_error, reports[1].all.deviation_error);
      for (int c = -1; c < static_cast<int>(report.channels.size()); ++c) {
        const ChannelStatistics& found = c < 0 ? report.all : report.channels[c];
        EXPECT_NEAR(found.deviation_error / DeviationError(values, shape, c, found), 1,
                    offset > 0 ? 1e-6 : 1e-10)
            << c << " of " << shape.size() << " axes, offset " << offset;
      }
    }
  }
}

TEST(DescribeChannels, SurvivesDataWithoutVarianceAndSaysWhatIsMissing) {
  const std::vector<double> same(8 * 5, 3.25);
  const auto report = DescribeChannels(*Estimate(same, {2, 2, 2}));
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->scaling_factor, 0);
  EXPECT_EQ(report->all.deviation, 0);
  EXPECT_EQ(report->all.deviation_error, 0);
  EXPECT_DOUBLE_EQ(report->scaling_factor_uncentred, 1 / 3.25);
  EXPECT_EQ(report->all.effective, 40);
  EXPECT_THAT(DescribeChannels(Spectrum()).status().message(), HasSubstr("of 0 samples"));
}

}  // namespace
}  // namespace mergeplan
