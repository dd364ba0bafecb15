// Shrinkage against its definitions written out, and against the truth.
#include "planner/spectrum/shrinkage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "planner/spectrum/basis.h"
#include "tests/planner/spectrum/estimates.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

EstimateOptions With(const std::vector<double>& values, const std::vector<std::int64_t>& shape,
                     const std::string& rule) {
  EstimateOptions options = WithSecondPass(values, shape);
  options.shrinkage_rule = rule;
  return options;
}

// Ledoit and Wolf (2004), section 3.2, with all matrices written out.
double LedoitWolfPlainly(const std::vector<double>& values, int d) {
  const int n = static_cast<int>(values.size()) / d;
  std::vector<double> mean(d), s(d * d);
  for (int k = 0; k < n * d; ++k) mean[k % d] += values[k] / n;
  const auto product = [&](int r, int i, int j) {
    return (values[r * d + i] - mean[i]) * (values[r * d + j] - mean[j]);
  };
  for (int r = 0; r < n; ++r) {
    for (int e = 0; e < d * d; ++e) s[e] += product(r, e / d, e % d) / n;
  }
  double m = 0, distance = 0, error = 0;
  for (int i = 0; i < d; ++i) m += s[i * d + i] / d;
  for (int e = 0; e < d * d; ++e) {
    const double off = s[e] - (e % (d + 1) == 0 ? m : 0);
    distance += off * off / d;
    for (int r = 0; r < n; ++r) {
      const double miss = product(r, e / d, e % d) - s[e];
      error += miss * miss / d / n / n;
    }
  }
  return std::min(error, distance) / distance;
}

TEST(Shrinkage, EqualsTheDefinitionOfLedoitAndWolf) {
  for (const auto& [n, d] : {std::pair{30, 6}, {8, 12}, {200, 3}}) {
    const std::vector<double> values = Correlated(n, d, 4, 2, 31);
    const auto spectrum = Estimate(values, {d}, With(values, {d}, "ledoit-wolf"));
    ASSERT_TRUE(spectrum.ok()) << spectrum.status();
    EXPECT_NEAR(spectrum->shrinkage, LedoitWolfPlainly(values, d), 1e-6);
    EXPECT_EQ(spectrum->shrinkage_rule, "ledoit-wolf");
  }
}

TEST(Shrinkage, OfOasIsItsFormula) {
  // S = diag(3, 1), n = 5 in the paper's normalisation: rho = 16 / ((6 - 1) (10 - 8)) = 1.6, at
  // most 1; and with n = 50: (0 * 10 + 16) / (50 * 2) = 0.16.
  Spectrum spectrum;
  spectrum.samples = 5;
  spectrum.mean = {0, 0};
  spectrum.covariance = {3 * 5 / 4.0, 0, 0, 5 / 4.0};
  spectrum.diagonal.variances = {3 * 5 / 4.0, 5 / 4.0};
  EXPECT_EQ(OasIntensity(spectrum), 1);
  spectrum.samples = 50;
  spectrum.covariance = {3 * 50 / 49.0, 0, 0, 50 / 49.0};
  spectrum.diagonal.variances = {3 * 50 / 49.0, 50 / 49.0};
  EXPECT_NEAR(OasIntensity(spectrum), 0.16, 1e-14);
}

// The mean square distance from the true covariance falls, with less data more so.
TEST(Shrinkage, BringsTheCovarianceNearerToTheTruth) {
  constexpr int kD = 40, kN = 30;
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  double plain = 0, oas = 0, lw = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<double> values;
    for (int k = 0; k < kN * kD; ++k) values.push_back((1 + 0.02 * (k % kD)) * normal(random));
    const auto distance = [&](const std::string& rule) {
      const auto spectrum = Estimate(values, {kD}, With(values, {kD}, rule));
      EXPECT_TRUE(spectrum.ok()) << spectrum.status();
      double sum = 0;
      for (int e = 0; e < kD * kD; ++e) {
        const double truth = e % (kD + 1) == 0 ? std::pow(1 + 0.02 * (e % kD), 2) : 0;
        sum += std::pow(spectrum->covariance[e] - truth, 2);
      }
      return sum;
    };
    plain += distance("none");
    oas += distance("oas");
    lw += distance("ledoit-wolf");
  }
  EXPECT_LT(oas, 0.25 * plain);
  EXPECT_LT(lw, 0.25 * plain);
}

TEST(Shrinkage, KeepsCovarianceVariancesAndEnergiesTogether) {
  const std::vector<double> values = Correlated(20, 12, 0, 1, 6);
  const auto raw = Estimate(values, {3, 4}, With(values, {3, 4}, "none"));
  const auto shrunk = Estimate(values, {3, 4}, With(values, {3, 4}, "oas"));
  ASSERT_TRUE(raw.ok() && shrunk.ok());
  EXPECT_GT(shrunk->shrinkage, 0);
  EXPECT_LT(shrunk->shrinkage, 1);
  double off = 0, all = 0;
  for (int e = 0; e < 144; ++e) {
    all += shrunk->covariance[e] * shrunk->covariance[e];
    if (e % 13 != 0) off += shrunk->covariance[e] * shrunk->covariance[e];
  }
  EXPECT_NEAR(shrunk->diagonal.off_diagonal_energy, off / all, 1e-12);
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(shrunk->diagonal.variances[i], shrunk->covariance[i * 13]);
    double turned = 0;  // v^T C v
    for (int e = 0; e < 144; ++e) {
      turned += shrunk->vectors[i * 12 + e / 12] * shrunk->covariance[e] *
                shrunk->vectors[i * 12 + e % 12];
    }
    EXPECT_NEAR(shrunk->pca.variances[i], turned, 1e-12);
  }
  EXPECT_LT(shrunk->pca.variances[0], raw->pca.variances[0]);
  EXPECT_GT(shrunk->pca.variances[11], raw->pca.variances[11]);
}

TEST(Shrinkage, OfOneDimensionOrNoVarianceChangesNothing) {
  for (const char* rule : {"oas", "ledoit-wolf"}) {
    const std::vector<double> one = {1, 2, 4}, same = {2, 2, 2, 2, 2, 2};
    const auto single = Estimate(one, {1}, With(one, {1}, rule));
    ASSERT_TRUE(single.ok()) << single.status();
    EXPECT_NEAR(single->diagonal.variances[0], 7.0 / 3, 1e-14);
    const auto flat = Estimate(same, {2}, With(same, {2}, rule));
    ASSERT_TRUE(flat.ok()) << flat.status();
    EXPECT_EQ(flat->diagonal.variances[0], 0);
    EXPECT_TRUE(std::isfinite(flat->shrinkage));
  }
  EstimateOptions options;
  options.shrinkage_rule = "ledoit-wolf";
  EXPECT_THAT(Estimate({1, 2, 3}, {1}, options).status().message(), HasSubstr("second pass"));
  options.shrinkage_rule = "most";
  EXPECT_THAT(Estimate({1, 2, 3}, {1}, options).status().message(), HasSubstr("\"most\""));
}

}  // namespace
}  // namespace mergeplan
