// The DCT against its definition, and the variances along its axes against the data's own.
#include "planner/spectrum/dct.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "planner/spectrum/basis.h"
#include "planner/spectrum/finish.h"
#include "tests/planner/spectrum/estimates.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

double Axis(std::int64_t k, std::int64_t i, std::int64_t n) {
  const double scale = std::sqrt((k == 0 ? 1.0 : 2.0) / static_cast<double>(n));
  return scale * std::cos(std::numbers::pi * (i + 0.5) * k / static_cast<double>(n));
}

TEST(Dct, EqualsItsDefinitionAndLeadsBack) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (const SpatialAxes axes : {SpatialAxes{1, 1, 7}, {2, 4, 6}, {3, 5, 1}, {6, 2, 3}}) {
    const Dct dct(axes);
    const std::int64_t h = axes.height, w = axes.width, d = dct.dimensions();
    ASSERT_EQ(d, axes.planes * h * w);
    std::vector<double> x, scratch;
    for (std::int64_t i = 0; i < d; ++i) x.push_back(normal(random));
    std::vector<double> y = x;
    dct.Forward(y.data(), scratch);
    const std::vector<double> matrix = dct.Matrix();
    for (std::int64_t k = 0; k < d; ++k) {
      double sum = 0, by_matrix = 0;
      for (std::int64_t i = 0; i < h; ++i) {
        for (std::int64_t j = 0; j < w; ++j) {
          sum +=
              Axis(k % (h * w) / w, i, h) * Axis(k % w, j, w) * x[k / (h * w) * h * w + i * w + j];
        }
      }
      for (std::int64_t i = 0; i < d; ++i) by_matrix += matrix[k * d + i] * x[i];
      EXPECT_NEAR(y[k], sum, 1e-13);
      EXPECT_NEAR(by_matrix, sum, 1e-13);
      EXPECT_NEAR(dct.Coefficient(k, x.data(), 1), sum, 1e-13);
    }
    dct.Backward(y.data(), scratch);
    for (std::int64_t i = 0; i < d; ++i) EXPECT_NEAR(y[i], x[i], 1e-13);
  }
}

TEST(SpatialAxesOf, AreTheLastTwo) {
  EXPECT_FALSE(SpatialAxesOf({}));
  EXPECT_FALSE(SpatialAxesOf({9}));
  EXPECT_FALSE(SpatialAxesOf({9, 1, 1}));
  EXPECT_FALSE(SpatialAxesOf({1, 2, 3, 4, 5}));
  EXPECT_EQ(SpatialAxesOf({28, 27})->planes, 1);
  EXPECT_EQ(SpatialAxesOf({28, 27})->width, 27);
  EXPECT_EQ(SpatialAxesOf({4, 8, 9})->planes, 4);
  EXPECT_EQ(SpatialAxesOf({5, 4, 8, 9})->planes, 20);
  EXPECT_EQ(SpatialAxesOf({5, 4, 8, 9})->height, 8);
}

TEST(DctBasis, HasTheVariancesAndMomentsOfTheCoefficients) {
  const std::vector<std::int64_t> shape = {2, 3, 4};
  const int d = 24, n = 700;
  const std::vector<double> values = Correlated(n, d, 3, 2, 12);
  EstimateOptions options = WithSecondPass(values, shape);
  const auto spectrum = Estimate(values, shape, options);
  ASSERT_TRUE(spectrum.ok()) << spectrum.status();
  ASSERT_TRUE(spectrum->has_dct());
  EXPECT_EQ(spectrum->dct.interval, "fourth-moment");
  const auto y = ProjectToBasis(*spectrum, "dct", values);
  ASSERT_TRUE(y.ok()) << y.status();
  std::vector<double> plain;
  for (const double value : *y) plain.push_back(value);
  const auto direct = Estimate(plain, {d});
  ASSERT_TRUE(direct.ok()) << direct.status();
  for (int i = 0; i < d; ++i) {
    EXPECT_NEAR(spectrum->dct.variances[i], direct->diagonal.variances[i], 1e-11);
    EXPECT_NEAR(spectrum->dct.skewness[i], direct->diagonal.skewness[i], 1e-9);
    EXPECT_NEAR(spectrum->dct.kurtosis[i], direct->diagonal.kurtosis[i], 1e-9);
    EXPECT_NEAR(spectrum->dct.variances_high[i], direct->diagonal.variances_high[i], 1e-8);
  }
  EXPECT_NEAR(spectrum->dct.off_diagonal_energy, direct->diagonal.off_diagonal_energy, 1e-11);
}

// Samples whose DCT coefficients are independent: white noise through a stationary-like filter.
std::vector<double> Smooth(const std::vector<std::int64_t>& shape, int n) {
  const Dct dct(*SpatialAxesOf(shape));
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  std::vector<double> values, scratch;
  const std::int64_t d = dct.dimensions();
  for (int r = 0; r < n; ++r) {
    for (std::int64_t k = 0; k < d; ++k) values.push_back(normal(random) / (1.0 + k));
    dct.Backward(values.data() + values.size() - d, scratch);
  }
  return values;
}

TEST(DctBasis, IsRecommendedWhereItIsTheCheapestThatDoes) {
  const std::vector<double> values = Smooth({1, 4, 4}, 4000);
  const auto spectrum = Estimate(values, {1, 4, 4});
  ASSERT_TRUE(spectrum.ok()) << spectrum.status();
  EXPECT_GT(spectrum->diagonal.off_diagonal_energy, 0.3);
  EXPECT_EQ(spectrum->recommended_basis, "dct");
  EXPECT_THAT(spectrum->recommended_basis_reason, HasSubstr("off that of dct"));
  // Everything is good enough, or nothing but the principal directions is.
  EstimateOptions options;
  options.off_diagonal_bound = 1;
  EXPECT_EQ(Estimate(values, {1, 4, 4}, options)->recommended_basis, "diagonal");
  const std::vector<double> mixed = Correlated(4000, 16, 0, 1, 3);
  EXPECT_EQ(Estimate(mixed, {1, 4, 4})->recommended_basis, "pca");
  options.off_diagonal_bound = 0.01;
  options.want_pca = false;
  const auto without = Estimate(mixed, {1, 4, 4}, options);
  EXPECT_THAT(without->recommended_basis_reason, HasSubstr("this one has the least"));
  options.want_dct = false;
  EXPECT_EQ(Estimate(values, {1, 4, 4}, options)->recommended_basis_reason,
            "no other basis was computed");
}

}  // namespace
}  // namespace mergeplan
