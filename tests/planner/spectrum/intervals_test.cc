// Confidence intervals of variances: do they cover, and what do they depend on?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "planner/spectrum/estimate.h"
#include "tests/planner/spectrum/estimates.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

// Counts how often the intervals hold the truth. `factors` draws one value of variance 1.
template <typename Draw>
void ExpectCoverage(Draw draw, bool second_pass, double fewest, double most) {
  // 400 trials; as many as MERGEPLAN_COVERAGE_TRIALS says for the figures of the README.
  const char* asked = std::getenv("MERGEPLAN_COVERAGE_TRIALS");
  const int kRounds = asked == nullptr ? 400 : std::atoi(asked);
  constexpr int kN = 3000;
  const double truth[] = {4, 1, 0.25};
  std::mt19937_64 random(20240607);
  int diagonal = 0, pca = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> values;
    for (int r = 0; r < kN; ++r) {
      for (const double variance : truth) {
        values.push_back(static_cast<float>(std::sqrt(variance) * draw(random)));
      }
    }
    const auto spectrum =
        Estimate(values, {3}, second_pass ? WithSecondPass(values, {3}) : EstimateOptions());
    ASSERT_TRUE(spectrum.ok()) << spectrum.status();
    for (int i = 0; i < 3; ++i) {
      const auto covers = [&](const Basis& basis) {
        return basis.variances_low[i] <= truth[i] && truth[i] <= basis.variances_high[i];
      };
      diagonal += covers(spectrum->diagonal);
      pca += covers(spectrum->pca);
    }
  }
  std::printf("covered of %d: own axes %d, principal axes %d\n", 3 * kRounds, diagonal, pca);
  // 1,200 intervals at 95 %: 1,140 expected, standard deviation 7.5; four of them to either side.
  // Of more, the same shares.
  const double each = kRounds / 400.0;
  EXPECT_GE(diagonal, 1110 * each);
  EXPECT_LE(diagonal, 1170 * each);
  EXPECT_GE(pca, fewest * each);
  EXPECT_LE(pca, most * each);
  ::testing::Test::RecordProperty("diagonal", diagonal);
  ::testing::Test::RecordProperty("pca", pca);
}

TEST(Intervals, CoverTheTruthForGaussianData) {
  ExpectCoverage(std::normal_distribution<double>(), true, 1110, 1170);
  ExpectCoverage(std::normal_distribution<double>(), false, 1110, 1170);
}

TEST(Intervals, CoverTheTruthForSkewedData) {
  ExpectCoverage(std::exponential_distribution<double>(), true, 1110, 1170);
}

TEST(Intervals, CoverTheTruthForUniformData) {
  const double edge = std::sqrt(3.0);
  ExpectCoverage(std::uniform_real_distribution<double>(-edge, edge), true, 1110, 1170);
}

TEST(Intervals, OfAGaussianAreTooNarrowForSkewedDataAndSaySo) {
  // Kurtosis 9: the width is half of what it should be, so about 2 in 3 intervals hold the truth.
  ExpectCoverage(std::exponential_distribution<double>(), false, 720, 880);
  const auto spectrum = Estimate({1, 2, 3, 4}, {1});
  ASSERT_TRUE(spectrum.ok());
  EXPECT_EQ(spectrum->pca.interval, "gaussian");
  EXPECT_EQ(spectrum->diagonal.interval, "fourth-moment");
}

TEST(Intervals, DoNotDependOnTheUnit) {
  // Six columns that move together, so that their principal component is larger than any of them.
  std::vector<double> values = Correlated(500, 6, 0, 0.1, 8);
  const std::vector<double> together = Correlated(500, 1, 0, 1, 9);
  double largest = 0;
  for (int i = 0; i < 3000; ++i) {
    values[i] += together[i / 6];
    largest = std::max(largest, std::abs(values[i]));
  }
  const auto plain = Estimate(values, {6}, WithSecondPass(values, {6}));
  ASSERT_TRUE(plain.ok()) << plain.status();
  for (const int exponent : {127 - std::ilogb(largest), -120}) {
    std::vector<double> moved(values);
    for (double& value : moved) value = std::ldexp(value, exponent);
    const auto spectrum = Estimate(moved, {6}, WithSecondPass(moved, {6}));
    ASSERT_TRUE(spectrum.ok()) << spectrum.status();
    for (int i = 0; i < 6; ++i) {
      const auto width = [i](const Spectrum& s) {
        return std::log(s.pca.variances_high[i] / s.pca.variances_low[i]);
      };
      EXPECT_NEAR(width(*spectrum) / width(*plain), 1, 1e-4);
    }
  }
}

TEST(Intervals, WidenWithTheConfidence) {
  const std::vector<double> values = Correlated(200, 2, 0, 1, 4);
  double width = 0;
  for (const double confidence : {0.5, 0.95, 0.999999}) {
    EstimateOptions options;
    options.confidence = confidence;
    const auto spectrum = Estimate(values, {2}, options);
    ASSERT_TRUE(spectrum.ok());
    EXPECT_EQ(spectrum->confidence, confidence);
    const double now = spectrum->pca.variances_high[0] / spectrum->pca.variances_low[0];
    EXPECT_GT(now, width);
    width = now;
  }
  for (const double wrong : {0.0, 1.0, -1.0, std::nan("")}) {
    EstimateOptions options;
    options.confidence = wrong;
    EXPECT_THAT(Estimate(values, {2}, options).status().message(), HasSubstr("between 0 and 1"));
  }
}

}  // namespace
}  // namespace mergeplan
