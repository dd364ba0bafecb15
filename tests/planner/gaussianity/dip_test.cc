// The dip against its definition, Hartigan's example and the table made anew.
#include "planner/gaussianity/dip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace mergeplan {
namespace {

// Is there a distribution that is convex before and concave after the m-th of the distinct values x
// and stays within e of the data (in samples) everywhere? `below` and `upto` are the counts below
// and up to every value. The convex part must pass above upto - e and below below + e at all points
// to the left, and may end at the m-th value anywhere from the steepest line through two of those
// on; the concave part is the same from the other side; in between it may jump.
double LeastEnd(const std::vector<double>& x, const std::vector<double>& below,
                const std::vector<double>& upto, std::size_t m, double e) {
  double least = below[m] - e;
  for (std::size_t j = 0; j < m; ++j) {
    const double u = upto[j] - e;
    least = std::max(least, u);
    if (u > below[j] + e) return INFINITY;
    for (std::size_t i = 0; i < j; ++i) {
      const double slope = (u - (below[i] + e)) / (x[j] - x[i]);
      for (std::size_t k = j + 1; k <= m; ++k) {
        const double at = u + slope * (x[k] - x[j]);
        if (k < m && at > below[k] + e) return INFINITY;
        if (k == m) least = std::max(least, at);
      }
    }
  }
  return least <= below[m] + e ? least : INFINITY;
}

double DipByDefinition(const std::vector<double>& sorted) {
  std::vector<double> x, below, upto, mx, mbelow, mupto;
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    if (x.empty() || sorted[k] != x.back()) {
      x.push_back(sorted[k]);
      below.push_back(static_cast<double>(k));
      upto.push_back(0);
    }
    upto.back() = static_cast<double>(k + 1);
  }
  const double n = static_cast<double>(sorted.size());
  for (std::size_t k = x.size(); k-- > 0;) {
    mx.push_back(-x[k]);
    mbelow.push_back(n - upto[k]);
    mupto.push_back(n - below[k]);
  }
  double low = 0.5, high = n;
  const auto possible = [&](double e) {
    for (std::size_t m = 0; m < x.size(); ++m) {
      const double left = LeastEnd(x, below, upto, m, e);
      const double right = n - LeastEnd(mx, mbelow, mupto, x.size() - 1 - m, e);
      if (left <= right + 1e-12) return true;
    }
    return false;
  };
  if (possible(low)) return low / n;
  for (int k = 0; k < 60; ++k) {
    const double middle = (low + high) / 2;
    (possible(middle) ? high : low) = middle;
  }
  return high / n;
}

TEST(Dip, EqualsItsDefinitionOnRandomData) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (int round = 0; round < 300; ++round) {
    std::vector<double> x;
    const int n = 2 + round % 22;
    for (int k = 0; k < n; ++k) {
      double value = normal(random) + (round % 3 == 0 ? 6.0 * (k % 2) : 0);
      if (round % 5 == 0) value = std::round(2 * value);  // with ties
      x.push_back(value);
    }
    std::sort(x.begin(), x.end());
    if (x.front() == x.back()) continue;
    ASSERT_NEAR(Dip(x), DipByDefinition(x), 1e-9) << "round " << round << " n " << n;
  }
}

TEST(Dip, OfSomeDataIsKnown) {
  std::vector<double> even;
  for (int k = 0; k < 10; ++k) even.push_back(k);
  EXPECT_NEAR(Dip(even), 0.05, 1e-15);
  EXPECT_EQ(Dip({3, 3, 3}), 0);
  EXPECT_EQ(Dip({3}), 0);
  EXPECT_NEAR(Dip({0, 0, 0, 1, 1, 1}), 0.25, 1e-15);
  EXPECT_NEAR(Dip({0, 1, 1, 1, 1, 2}), 1.0 / 12, 1e-15);  // a heap at the mode is none
  std::vector<double> two = {0, 1e-9, 2e-9, 1, 1 + 1e-9, 1 + 2e-9};
  EXPECT_NEAR(Dip(two), 0.25, 1e-6);
}

TEST(Dip, DoesNotDependOnUnitOrDirection) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal;
  std::vector<double> x, y;
  for (int k = 0; k < 200; ++k) x.push_back(normal(random) + 3 * (k % 2));
  for (const double v : x) y.push_back(-1e-3 * v + 5);
  std::sort(x.begin(), x.end());
  std::sort(y.begin(), y.end());
  EXPECT_NEAR(Dip(x), Dip(y), 1e-9);
}

// Part of the table again, and sizes between its own.
TEST(DipPValue, IsThatOfUniformSamples) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform;
  for (const int n : {20, 100, 600}) {
    constexpr int kRounds = 2000;
    int below[3] = {};
    for (int round = 0; round < kRounds; ++round) {
      std::vector<double> x(n);
      for (double& v : x) v = uniform(random);
      std::sort(x.begin(), x.end());
      const double p = DipPValue(Dip(x), n);
      below[0] += p < 0.5;
      below[1] += p < 0.1;
      below[2] += p < 0.01;
    }
    EXPECT_NEAR(below[0], 1000, 90) << n;
    EXPECT_NEAR(below[1], 200, 54) << n;
    EXPECT_NEAR(below[2], 20, 18) << n;
  }
}

TEST(DipPValue, FallsWithTheDipAndStaysInRange) {
  double before = 1;
  for (double dip = 0; dip < 0.25; dip += 0.001) {
    const double p = DipPValue(dip, 500);
    EXPECT_LE(p, before);
    EXPECT_GE(p, 1e-5);
    before = p;
  }
  EXPECT_EQ(DipPValue(0.25, 4), 1);
  // Hartigan's faculty example, 63 values with a dip of 0.0595: R's diptest gives 0.0867.
  EXPECT_NEAR(DipPValue(0.059524, 63), 0.0867, 0.006);
}

}  // namespace
}  // namespace mergeplan
