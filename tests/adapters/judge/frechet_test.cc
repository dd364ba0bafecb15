#include "adapters/judge/frechet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/oracle/judging.h"

namespace mergeplan::judge {
namespace {

using ::testing::HasSubstr;

FeatureGaussian Diagonal(const std::vector<double>& mean, const std::vector<double>& variances) {
  FeatureGaussian out;
  out.rows = 100;
  out.mean = mean;
  const std::size_t d = mean.size();
  out.covariance.assign(d * d, 0);
  for (std::size_t k = 0; k < d; ++k) out.covariance[k * (d + 1)] = variances[k];
  return out;
}

// Positive definite, with eigenvalues spread over `decades`.
FeatureGaussian Random(int d, double decades, std::mt19937_64& bits) {
  std::normal_distribution<double> normal;
  std::vector<double> a(static_cast<std::size_t>(d) * d);
  for (double& x : a) x = normal(bits);
  FeatureGaussian out;
  out.rows = 100;
  out.covariance.assign(a.size(), 0);
  for (int i = 0; i < d; ++i) {
    out.mean.push_back(normal(bits));
    for (int j = 0; j < d; ++j) {
      double sum = i == j ? 1e-3 : 0;
      for (int k = 0; k < d; ++k) {
        sum += a[i * d + k] * a[j * d + k] * std::pow(10, -decades * k / d) / d;
      }
      out.covariance[i * d + j] = sum;
    }
  }
  return out;
}

oracle::PlainMatrix Plain(const FeatureGaussian& gaussian) {
  const std::size_t d = gaussian.mean.size();
  oracle::PlainMatrix out(d, std::vector<long double>(d));
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < d; ++j) out[i][j] = gaussian.covariance[i * d + j];
  }
  return out;
}

TEST(Frechet, OfDiagonalCovariancesItIsTheClosedForm) {
  const std::vector<double> m1 = {0, 1, -3}, m2 = {1, 1, 2}, v1 = {4, 0.25, 1e-6}, v2 = {1, 9, 0};
  double expected = 0;
  for (int k = 0; k < 3; ++k) {
    expected += std::pow(m1[k] - m2[k], 2) + std::pow(std::sqrt(v1[k]) - std::sqrt(v2[k]), 2);
  }
  const auto found = FrechetDistance(Diagonal(m1, v1), Diagonal(m2, v2));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_NEAR(*found, expected, 1e-12 * expected);
  const auto one = FrechetDistance(Diagonal({2}, {9}), Diagonal({-1}, {4}));  // one dimension
  ASSERT_TRUE(one.ok());
  EXPECT_NEAR(*one, 9 + 1, 1e-12);
}

TEST(Frechet, AgreesWithThePlainIterationOnRandomCovariances) {
  std::mt19937_64 bits(7);
  for (int trial = 0; trial < 60; ++trial) {
    const int d = 1 + trial % 12;
    const FeatureGaussian a = Random(d, trial % 3, bits), b = Random(d, 1, bits);
    const auto expected =
        static_cast<double>(oracle::PlainFrechet(a.mean, Plain(a), b.mean, Plain(b)));
    const auto found = FrechetDistance(a, b), back = FrechetDistance(b, a);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_NEAR(*found, expected, 1e-10 * (1 + expected)) << d;
    EXPECT_NEAR(*back, *found, 1e-10 * (1 + expected));
  }
}

TEST(Frechet, OfEqualAndOfSingularCovariancesNothingIsLost) {
  std::mt19937_64 bits(8);
  std::normal_distribution<double> normal;
  // Five rows in 40 dimensions: 36 eigenvalues are 0.
  std::vector<double> rows(5 * 40);
  for (double& x : rows) x = normal(bits);
  const auto a = FitFeatures(rows, 40);
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(a->rows, 5);
  const auto same = FrechetDistance(*a, *a);
  ASSERT_TRUE(same.ok());
  EXPECT_LT(*same, 1e-5);
  FeatureGaussian moved = *a;
  for (double& m : moved.mean) m += 0.5;
  EXPECT_NEAR(*FrechetDistance(*a, moved), 40 * 0.25, 1e-5);
  // All features the same number.
  const auto constant = FitFeatures(std::vector<double>(6, 3.0), 2);
  ASSERT_TRUE(constant.ok());
  EXPECT_EQ(*FrechetDistance(*constant, *constant), 0);
}

TEST(Frechet, MomentsAreThoseOfTheRows) {
  const auto found = FitFeatures({1e8 + 1, 0, 1e8 + 2, 1, 1e8 + 3, 5}, 2);
  ASSERT_TRUE(found.ok());
  EXPECT_DOUBLE_EQ(found->mean[0], 1e8 + 2);
  EXPECT_DOUBLE_EQ(found->mean[1], 2);
  EXPECT_NEAR(found->covariance[0], 1, 1e-12);
  EXPECT_NEAR(found->covariance[1], 2.5, 1e-12);
  EXPECT_NEAR(found->covariance[3], 7, 1e-12);
}

TEST(Frechet, SaysWhatIsWrong) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(FitFeatures({1, 2, 3}, 2).status().message(), HasSubstr("rows of 2"));
  EXPECT_THAT(FitFeatures({1, 2}, 2).status().message(), HasSubstr("2 or more"));
  EXPECT_THAT(FitFeatures({}, 2).status().message(), HasSubstr("2 or more"));
  EXPECT_THAT(FitFeatures({1, nan, 3, 4}, 2).status().message(), HasSubstr("not finite"));
  EXPECT_THAT(FitFeatures({1e300, 0, -1e300, 1}, 2).status().message(), HasSubstr("too large"));
  const FeatureGaussian one = Diagonal({0}, {1});
  EXPECT_THAT(FrechetDistance(one, Diagonal({0, 0}, {1, 1})).status().message(),
              HasSubstr("of 1 and of 2"));
  EXPECT_THAT(FrechetDistance(one, Diagonal({nan}, {1})).status().message(),
              HasSubstr("not finite"));
  EXPECT_THAT(FrechetDistance(one, Diagonal({0}, {-1})).status().message(),
              HasSubstr("expected none below 0"));
  EXPECT_FALSE(FrechetDistance(one, FeatureGaussian()).ok());
}

}  // namespace
}  // namespace mergeplan::judge
