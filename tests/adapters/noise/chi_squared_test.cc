#include "adapters/noise/chi_squared.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace mergeplan {
namespace {

TEST(PortableLog, IsTheLogarithm) {
  std::uint64_t state = 1;
  for (int i = 0; i < 100000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const double x = std::ldexp(1 + static_cast<double>(state >> 11) * 0x1p-53, i % 120 - 60);
    const double expected = std::log(x);
    EXPECT_NEAR(PortableLog(x), expected, 5e-16 * std::max(1.0, std::abs(expected))) << x;
  }
  for (const double x : {1.0, 1 - 0x1p-53, 1 + 0x1p-52, 0x1p-54}) {
    EXPECT_NEAR(PortableLog(x), std::log(x), 4e-16 * std::abs(std::log(x)));
  }
}

TEST(PortableCosine, IsTheCosine) {
  std::uint64_t state = 1;
  long double worst = 0;
  for (int i = 0; i < 100000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const auto word = static_cast<std::uint32_t>(state >> 32);
    const long double turns = word * 0x1p-32L;
    worst = std::max(worst, std::abs(PortableCosine(word) - std::cos(8 * std::atan(1.0L) * turns)));
  }
  EXPECT_LT(worst, 2.5e-16L);
  EXPECT_EQ(PortableCosine(0), 1);
  EXPECT_EQ(PortableCosine(0x80000000), -1);
  EXPECT_EQ(PortableCosine(0x40000000), 0);
}

// Distribution function of chi^2 with an even number of degrees: exp(-x/2) sum_{j < n/2} (x/2)^j /
// j! is the tail; with one degree the normal law's.
double Cdf(double x, int count) {
  if (count == 1) return std::erf(std::sqrt(x / 2));
  const double half = x / 2;
  double term = std::exp(-half), tail = 0;
  for (int j = 0; j < count / 2; ++j) {
    tail += term;
    term *= half / (j + 1);
  }
  return 1 - tail;
}

TEST(ChiSquaredStream, HasTheLaw) {
  for (const int count : {1, 2, 4, 64, 640}) {
    constexpr int kDraws = 200000;
    const ChiSquaredStream stream(StreamName::Of(3, 1, 5, 1), count);
    std::vector<double> x(kDraws);
    for (int i = 0; i < kDraws; ++i) x[i] = stream.At(i);
    double sum = 0, squares = 0;
    for (const double v : x) {
      sum += v - count;
      squares += (v - count) * (v - count);
    }
    const double variance = 2.0 * count, fourth = 12.0 * count * (count + 4);
    EXPECT_LT(std::abs(sum / kDraws), 5 * std::sqrt(variance / kDraws)) << count;
    EXPECT_LT(std::abs(squares / kDraws - variance),
              5 * std::sqrt((fourth - variance * variance) / kDraws))
        << count;
    std::sort(x.begin(), x.end());
    double distance = 0;
    for (int i = 0; i < kDraws; ++i) {
      distance = std::max(distance, std::abs(Cdf(x[i], count) - (i + 0.5) / kDraws));
    }
    EXPECT_LT(distance * std::sqrt(kDraws), 2.7) << count;  // 1e-6
  }
}

// In distribution what the other stream's squares add up to, for an odd number too.
TEST(ChiSquaredStream, IsTheSumOfSquaresOfNormalNumbers) {
  constexpr int kDraws = 20000;
  for (const int count : {1, 3, 17}) {
    std::vector<double> drawn(kDraws), summed(kDraws);
    const ChiSquaredStream stream(StreamName::Of(3, 1, 5, 1), count);
    NoiseStream noise(3, 1, 5, 0);
    std::vector<float> z(count);
    for (int i = 0; i < kDraws; ++i) {
      drawn[i] = stream.At(i);
      noise.Fill(z.data(), count);
      for (const double v : z) summed[i] += v * v;
    }
    std::sort(drawn.begin(), drawn.end());
    std::sort(summed.begin(), summed.end());
    // Two-sample distance; sqrt(n / 2) times it is beyond 2.7 with a probability of 1e-6.
    double distance = 0;
    size_t j = 0;
    for (int i = 0; i < kDraws; ++i) {
      while (j < summed.size() && summed[j] < drawn[i]) ++j;
      distance = std::max(distance, std::abs(static_cast<double>(j) - i - 0.5) / kDraws);
    }
    EXPECT_LT(distance * std::sqrt(kDraws / 2.0), 2.7) << count;
  }
}

TEST(ChiSquaredStream, ADrawDependsOnItsNameAndPlaceOnly) {
  const ChiSquaredStream a(StreamName::Of(3, 1, 5, 1), 64), b(StreamName::Of(3, 1, 5, 1), 64);
  const double late = a.At(1000);
  EXPECT_NE(a.At(0), late);
  EXPECT_EQ(b.At(1000), late);
  EXPECT_NE(ChiSquaredStream(StreamName::Of(4, 1, 5, 1), 64).At(1000), late);
}

}  // namespace
}  // namespace mergeplan
