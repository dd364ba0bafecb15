// Tails against closed forms and published values; the one-dimensional tests against scipy's
// documented examples and by their size under normality.
#include "planner/gaussianity/tails.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "planner/gaussianity/univariate.h"

namespace mergeplan {
namespace {

TEST(NormalTails, AreThePublishedOnes) {
  EXPECT_NEAR(NormalTwoSided(1.959963984540054), 0.05, 1e-15);
  EXPECT_NEAR(NormalUpper(2.3263478740408408), 0.01, 1e-15);
  EXPECT_EQ(NormalTwoSided(0), 1);
  EXPECT_GT(NormalUpper(30), 0);
}

TEST(ChiSquaredUpper, IsTheClosedFormForEvenFreedom) {
  // Q = exp(-x/2) sum_{k < m} (x/2)^k / k! with 2 m degrees of freedom.
  for (const int m : {1, 2, 5, 40}) {
    for (const double x : {0.01, 0.5, 1.0, 3.0, 10.0, 60.0, 100.0, 200.0}) {
      double term = 1, sum = 0;
      for (int k = 0; k < m; ++k) sum += term, term *= x / 2 / (k + 1);
      const double expected = std::exp(-x / 2) * sum;
      EXPECT_NEAR(ChiSquaredUpper(x, 2 * m) / expected, 1, 1e-9) << m << " " << x;
    }
  }
  for (const double z : {0.1, 1.0, 2.0, 5.0}) {
    EXPECT_NEAR(ChiSquaredUpper(z * z, 1) / NormalTwoSided(z), 1, 1e-10);
  }
  EXPECT_EQ(ChiSquaredUpper(0, 3), 1);
  EXPECT_EQ(ChiSquaredUpper(INFINITY, 3), 0);
  // Far out in freedom the normal approximation holds.
  EXPECT_NEAR(ChiSquaredUpper(22100 + 2 * std::sqrt(2 * 22100.0), 22100), NormalUpper(2), 2e-3);
}

TEST(HolmAdjusted, IsTheExampleOfAnyTextbook) {
  const std::vector<double> p = {0.01, 0.04, 0.03, 0.005};
  const std::vector<double> adjusted = HolmAdjusted(p);
  EXPECT_NEAR(adjusted[0], 0.03, 1e-15);
  EXPECT_NEAR(adjusted[1], 0.06, 1e-15);
  EXPECT_NEAR(adjusted[2], 0.06, 1e-15);
  EXPECT_NEAR(adjusted[3], 0.02, 1e-15);
  EXPECT_TRUE(HolmAdjusted({}).empty());
  EXPECT_EQ(HolmAdjusted({0.9, 0.8})[0], 1);
}

// scipy.stats.skewtest and kurtosistest, from their documentation.
TEST(UnivariateTests, AgreeWithTheDocumentedExamples) {
  const std::vector<double> a = {2, 8, 0, 4, 1, 9, 9, 0}, b = {1, 2, 3, 4, 5, 6, 7, 8000};
  EXPECT_NEAR(SkewnessPValue(ShapeOf(a).skewness, 8), 0.6554066631275459, 1e-12);
  EXPECT_NEAR(SkewnessPValue(ShapeOf(b).skewness, 8), 0.0003545719905823133, 1e-12);
  std::vector<double> range;
  for (int k = 0; k < 20; ++k) range.push_back(k);
  EXPECT_NEAR(KurtosisPValue(ShapeOf(range).kurtosis, 20), 0.08804338332528348, 1e-12);
}

TEST(UnivariateTests, HaveTheSizeTheyClaim) {
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  for (const int n : {30, 500}) {
    int skewed = 0, tailed = 0;
    for (int round = 0; round < 4000; ++round) {
      std::vector<double> x;
      for (int k = 0; k < n; ++k) x.push_back(5 + 3 * normal(random));
      const Shape shape = ShapeOf(x);
      skewed += SkewnessPValue(shape.skewness, n) < 0.05;
      tailed += KurtosisPValue(shape.kurtosis, n) < 0.05;
    }
    // 200 expected, standard deviation 13.8; the transformations are exact to about a tenth.
    EXPECT_NEAR(skewed, 200, 65) << n;
    EXPECT_NEAR(tailed, 200, 65) << n;
  }
}

TEST(ShapeOf, SurvivesWhatDoesNotVary) {
  EXPECT_EQ(ShapeOf({}).kurtosis, 3);
  EXPECT_EQ(ShapeOf({4}).skewness, 0);
  EXPECT_EQ(ShapeOf({4, 4, 4}).kurtosis, 3);
  EXPECT_NEAR(ShapeOf({-1, 1}).kurtosis, 1, 1e-15);
}

}  // namespace
}  // namespace mergeplan
