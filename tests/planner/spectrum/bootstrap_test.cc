#include "planner/spectrum/bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "planner/spectrum/figures.h"
#include "tests/planner/spectrum/estimates.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

TEST(PoissonWeights, AreDrawsOfPoissonOneAndDependOnNothingElse) {
  constexpr int kN = 5000, kB = 21;
  std::vector<double> all(kN * kB), part(100 * kB);
  PoissonWeights(7, 0, kN, kB, all.data());
  PoissonWeights(7, 1234, 100, kB, part.data());
  for (int k = 0; k < 100 * kB; ++k) ASSERT_EQ(part[k], all[1234 * kB + k]);
  PoissonWeights(8, 1234, 100, kB, part.data());
  int same = 0;
  for (int k = 0; k < 100 * kB; ++k) same += part[k] == all[1234 * kB + k];
  EXPECT_LT(same, 900);  // by chance 31 %, 648
  // Chi-squared with 5 degrees of freedom: 0, 1, 2, 3, 4, more.
  double counts[6] = {}, chi = 0, term = std::exp(-1.0), left = 1;
  for (const double w : all) ++counts[static_cast<int>(std::min(w, 5.0))];
  for (int k = 0; k < 6; ++k) {
    const double expected = all.size() * (k < 5 ? term : left);
    chi += (counts[k] - expected) * (counts[k] - expected) / expected;
    left -= term;
    term /= k + 1;
  }
  EXPECT_LT(chi, 20.5);  // p = 0.001
}

// Against weighting every sample by hand.
TEST(VarianceBootstrap, EqualsTheWeightedVariancesOfEveryReplicate) {
  constexpr int kN = 60, kD = 3, kB = 10;
  const std::vector<double> rows = Correlated(kN, kD, 0.5, 1, 3);
  std::vector<double> weights(kN * kB);
  PoissonWeights(1, 0, kN, kB, weights.data());
  VarianceBootstrap bootstrap(kD, kB, BestKernels(), 2);
  const auto span = absl::MakeConstSpan(rows);
  const auto w = absl::MakeConstSpan(weights);
  ASSERT_TRUE(bootstrap.Add(span.subspan(0, 20 * kD), w.subspan(0, 20 * kB), 20).ok());
  ASSERT_TRUE(bootstrap.Add(span.subspan(20 * kD), w.subspan(20 * kB), kN - 20).ok());
  const std::vector<double> errors = bootstrap.LogErrors();
  for (int i = 0; i < kD; ++i) {
    std::vector<double> logs;
    for (int b = 0; b < kB; ++b) {
      std::vector<double> drawn;
      for (int r = 0; r < kN; ++r) drawn.insert(drawn.end(), weights[r * kB + b], rows[r * kD + i]);
      double mean = 0, square = 0;
      for (const double x : drawn) mean += x / drawn.size();
      for (const double x : drawn) square += (x - mean) * (x - mean) / (drawn.size() - 1.0);
      logs.push_back(std::log(square));
    }
    double mean = 0, square = 0;
    for (const double x : logs) mean += x / kB;
    for (const double x : logs) square += (x - mean) * (x - mean) / (kB - 1);
    EXPECT_NEAR(errors[i], std::sqrt(square), 1e-12);
  }
}

template <typename Draw>
void ExpectCoverage(Draw draw) {
  constexpr int kN = 500, kRounds = 1000;
  std::mt19937_64 random(11);
  int diagonal = 0, pca = 0, dct = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> values;
    for (int r = 0; r < kN; ++r) {
      const double a = 2 * draw(random), b = draw(random);
      values.push_back((a + b) / std::sqrt(2.0));
      values.push_back((a - b) / std::sqrt(2.0));
    }
    EstimateOptions options = WithSecondPass(values, {1, 2});
    options.bootstrap = 100;
    options.seed = round;
    options.threads = 1;
    const auto spectrum = Estimate(values, {1, 2}, options);
    ASSERT_TRUE(spectrum.ok()) << spectrum.status();
    const auto covers = [](const Basis& basis, int i, double truth) {
      return basis.variances_low[i] <= truth && truth <= basis.variances_high[i];
    };
    ASSERT_EQ(spectrum->pca.interval, "bootstrap");
    diagonal += covers(spectrum->diagonal, 0, 2.5);
    dct += covers(spectrum->dct, 0, 4);
    pca += covers(spectrum->pca, 1, 1);
  }
  std::printf("covered of %d: own axes %d, cosine transform %d, principal axes %d\n", kRounds,
              diagonal, dct, pca);
  for (const int covered : {diagonal, dct, pca}) {
    EXPECT_GE(covered, 922);
    EXPECT_LE(covered, 978);
  }
}

TEST(BootstrapIntervals, CoverForNormalData) { ExpectCoverage(std::normal_distribution<double>()); }
TEST(BootstrapIntervals, CoverForUniformData) {
  const double edge = std::sqrt(3.0);
  ExpectCoverage(std::uniform_real_distribution<double>(-edge, edge));
}

TEST(BootstrapIntervals, SurviveTwoSamplesAndNoVariance) {
  const std::vector<double> values = {1, 5, 2, 5};
  EstimateOptions options = WithSecondPass(values, {2});
  options.bootstrap = 5;
  const auto spectrum = Estimate(values, {2}, options);
  ASSERT_TRUE(spectrum.ok()) << spectrum.status();
  EXPECT_LE(spectrum->diagonal.variances_low[0], 0.5);
  EXPECT_GE(spectrum->diagonal.variances_high[0], 0.5);
  EXPECT_TRUE(std::isfinite(spectrum->diagonal.variances_high[0]));
  EXPECT_EQ(spectrum->diagonal.variances_high[1], 0);
  options.reopen = nullptr;
  EXPECT_THAT(Estimate(values, {2}, options).status().message(), HasSubstr("second pass"));
}

TEST(FiguresOf, AreThoseOfTheirDefinitions) {
  Basis basis;
  basis.variances = {4, 1, 0.5, 0};
  basis.variances_low = {2, 0.9, 0.45, 0};
  basis.variances_high = {8, 1 / 0.9, 0.5 / 0.9, 0};
  const BasisFigures f = FiguresOf(basis, 0.95);
  EXPECT_NEAR(f.energy_above_one, 4 / 5.5, 1e-15);
  EXPECT_EQ(f.undecided, 1);
  const double error = std::log(2.0) / 1.959963984540054;
  EXPECT_NEAR(f.distance[0], std::log(4.0) / error, 1e-9);
  EXPECT_EQ(f.distance[1], 0);
  EXPECT_LT(f.distance[2], -10);
  EXPECT_EQ(f.distance[3], -INFINITY);
  EXPECT_NEAR(f.participation_ratio, 5.5 * 5.5 / 17.25, 1e-14);
  double entropy = 0;
  for (const double p : {4 / 5.5, 1 / 5.5, 0.5 / 5.5}) entropy -= p * std::log(p);
  EXPECT_NEAR(f.effective_rank, std::exp(entropy), 1e-14);
  EXPECT_NEAR(f.effective_samples_least, 2 / error / error + 1, 1e-9);
  // Alike: as many as there are; one alone: 1; none: 0.
  basis.variances = basis.variances_low = basis.variances_high = {3, 3, 3, 3};
  EXPECT_NEAR(FiguresOf(basis, 0.95).effective_rank, 4, 1e-14);
  EXPECT_NEAR(FiguresOf(basis, 0.95).participation_ratio, 4, 1e-14);
  basis.variances = basis.variances_low = basis.variances_high = {0, 0};
  EXPECT_EQ(FiguresOf(basis, 0.95).effective_rank, 0);
  EXPECT_EQ(FiguresOf(basis, 0.95).energy_above_one, 0);
}

// Normal samples count for one each, by definition.
TEST(FiguresOf, CountsNormalSamplesAsOne) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal;
  std::vector<double> values;
  for (int k = 0; k < 20000; ++k) values.push_back(normal(random));
  const auto spectrum = Estimate(values, {1});
  EXPECT_NEAR(FiguresOf(spectrum->diagonal, 0.95).effective_samples_median, 20000, 2500);
}

}  // namespace
}  // namespace mergeplan
