#include "planner/mixture/draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "planner/mixture/moments.h"
#include "planner/mixture/row_numbers.h"
#include "tests/planner/mixture/random_mixture.h"

namespace mergeplan {
namespace {

using ::testing::ElementsAre;
using testing::kKinds;
using testing::RandomMixtureSpec;

// The known answers of the authors' own library (kat_vectors).
TEST(RowNumbers, UniformsAreInside) {
  EXPECT_GT(mixture::Uniform(0, 0), 0);
  EXPECT_LT(mixture::Uniform(0xffffffff, 0xffffffff), 1);
  EXPECT_NEAR(mixture::Uniform(0x80000000, 0), 0.5, 1e-15);
}

TEST(DrawRows, RowsHaveNames) {
  std::mt19937_64 rng(1);
  for (const CovarianceKind kind : kKinds) {
    const auto mixture = GaussianMixture::Create(RandomMixtureSpec(rng, kind, 3, 5));
    ASSERT_TRUE(mixture.ok());
    std::vector<double> all(100 * 5), part(7 * 5), other(7 * 5);
    std::vector<std::int32_t> component(100), some(7);
    DrawRows(*mixture, {0.6, 0.8}, {42, 3}, 0, 100, all.data(), component.data());
    DrawRows(*mixture, {0.6, 0.8}, {42, 3}, 50, 7, part.data(), some.data());
    EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + 50 * 5));
    EXPECT_TRUE(std::equal(some.begin(), some.end(), component.begin() + 50));
    DrawRows(*mixture, {0.6, 0.8}, {42, 4}, 50, 7, other.data(), nullptr);
    EXPECT_NE(other, part);
    DrawRows(*mixture, {0.6, 0.8}, {43, 3}, 50, 7, other.data(), nullptr);
    EXPECT_NE(other, part);
    // The row number is 64 bits wide.
    DrawRows(*mixture, {0.6, 0.8}, {42, 3}, 50 + (std::uint64_t{1} << 32), 7, other.data(),
             nullptr);
    EXPECT_NE(other, part);
  }
}

// Means and covariances of draws, at a level and as data with noise, and the shares of components.
// Every bound is six standard deviations of what it bounds.
TEST(DrawRows, FollowTheLaw) {
  std::mt19937_64 rng(2);
  const std::size_t n = 60000, d = 3;
  for (const CovarianceKind kind : kKinds) {
    const auto mixture = GaussianMixture::Create(RandomMixtureSpec(rng, kind, 4, d));
    ASSERT_TRUE(mixture.ok());
    const MixtureMoments moments = Moments(*mixture);
    const NoiseLevel level = {0.7, 0.5};
    std::vector<double> z(n * d), x0(n * d), noise(n * d);
    std::vector<std::int32_t> component(n);
    DrawRows(*mixture, level, {7, 0}, 0, n, z.data(), component.data());
    DrawPairs(*mixture, {8, 0}, 0, n, x0.data(), noise.data());
    for (std::size_t i = 0; i < n * d; ++i) {
      noise[i] = level.alpha * x0[i] + level.sigma * noise[i];
    }
    for (const std::vector<double>* draws : {&z, &noise}) {
      for (std::size_t i = 0; i < d; ++i) {
        for (std::size_t j = 0; j < d; ++j) {
          // Of the products of deviations from the true mean.
          const double mi = level.alpha * moments.mean[i], mj = level.alpha * moments.mean[j];
          double sum = 0, squares = 0, first = 0;
          for (std::size_t row = 0; row < n; ++row) {
            const double a = (*draws)[row * d + i] - mi, b = (*draws)[row * d + j] - mj;
            sum += a * b;
            squares += a * a * b * b;
            first += a;
          }
          const double variance = level.alpha * level.alpha * moments.covariance[i * d + j] +
                                  (i == j ? level.sigma * level.sigma : 0.0);
          const double mean = sum / static_cast<double>(n);
          const double spread = squares / static_cast<double>(n) - mean * mean;
          EXPECT_NEAR(mean, variance, 6 * std::sqrt(spread / static_cast<double>(n)));
          if (i == j) {
            EXPECT_NEAR(first / static_cast<double>(n), 0,
                        6 * std::sqrt(variance / static_cast<double>(n)));
          }
        }
      }
    }
    for (int k = 0; k < 4; ++k) {
      const double p = mixture->weights()[k];
      const auto count = static_cast<double>(std::count(component.begin(), component.end(), k));
      EXPECT_NEAR(count / n, p, 6 * std::sqrt(p * (1 - p) / n));
    }
  }
}

// Normal numbers in the classes between their 1/20 quantiles: chi square with 19 degrees of freedom
// stays below 60 (p = 4e-6).
TEST(DrawRows, NoiseIsNormal) {
  MixtureSpec spec;
  spec.components = spec.dimensions = 1;
  spec.weights = {1};
  spec.means = {0};
  spec.variances = {1};
  const auto mixture = GaussianMixture::Create(spec);
  ASSERT_TRUE(mixture.ok());
  const int n = 100000;
  std::vector<double> z(n);
  DrawRows(*mixture, {1, 0}, {3, 0}, 0, n, z.data(), nullptr);
  std::vector<int> counts(20);
  for (const double value : z) {
    const double p = 0.5 * std::erfc(-value / std::sqrt(2.0));
    ++counts[std::min(19, static_cast<int>(p * 20))];
  }
  double chi = 0;
  for (const int count : counts) chi += std::pow(count - n / 20.0, 2) / (n / 20.0);
  EXPECT_LT(chi, 60);
}

TEST(DrawRows, SingularDataStaysOnItsPlane) {
  MixtureSpec spec;
  spec.kind = CovarianceKind::kFull;
  spec.components = 1;
  spec.dimensions = 2;
  spec.weights = {1};
  spec.means = {1, 2};
  spec.covariances = {1, 2, 2, 4};
  const auto mixture = GaussianMixture::Create(spec);
  ASSERT_TRUE(mixture.ok());
  std::vector<double> z(200);
  DrawRows(*mixture, {1, 0}, {3, 0}, 0, 100, z.data(), nullptr);
  for (int i = 0; i < 100; ++i) EXPECT_NEAR(z[2 * i + 1] - 2, 2 * (z[2 * i] - 1), 1e-6);
}

}  // namespace
}  // namespace mergeplan
