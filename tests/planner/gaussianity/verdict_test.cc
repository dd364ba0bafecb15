// The verdicts on seeded sets of every kind. MERGEPLAN_VERDICT_SETS says how many sets of each kind
// (default 8; the README's figures are of 100). The thresholds were chosen while looking at the
// sets of the default seed: MERGEPLAN_VERDICT_SEED=1, 2, ... makes others.
#include "planner/gaussianity/gaussianity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>

#include "tests/planner/spectrum/estimates.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

int Sets() {
  const char* text = std::getenv("MERGEPLAN_VERDICT_SETS");
  return text == nullptr ? 8 : std::atoi(text);
}

int SeedOf(int kind, int set) {
  const char* text = std::getenv("MERGEPLAN_VERDICT_SEED");
  return kind + set + (text == nullptr ? 0 : 1'000'000 * std::atoi(text));
}

struct Size {
  int d, n;
};
// d = 2..128 and N = 2,000..60,000 in turn; large sets seldom, they take seconds.
Size SizeOf(int set) {
  constexpr int kD[] = {2, 3, 5, 8, 16, 32, 64, 128};
  const int d = kD[set % 8];
  if (set % 25 == 24) return {d, 60000};
  if (set % 8 == 7) return {d, 4000};
  return {d, 2000 + 1000 * (set % 5)};
}

Gaussianity Verdict(const std::vector<double>& values, int d, int seed) {
  EstimateOptions estimate = WithSecondPass(values, {d});
  const auto spectrum = Estimate(values, {d}, estimate);
  EXPECT_TRUE(spectrum.ok()) << spectrum.status();
  GaussianityOptions options;
  options.seed = static_cast<std::uint64_t>(seed);
  const auto verdict = TestGaussianity(*spectrum, values, options);
  EXPECT_TRUE(verdict.ok()) << verdict.status();
  return *verdict;
}

// Axes of deviations between 0.3 and 3, turned in pairs so that they are correlated.
void Turn(std::vector<double>& rows, int d, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform;
  for (int i = 0; i < d; ++i) {
    const double scale = 0.3 * std::pow(10.0, uniform(random));
    for (std::size_t k = i; k < rows.size(); k += d) rows[k] *= scale;
  }
  for (int i = 0; i + 1 < d; ++i) {
    const double angle = 6.28 * uniform(random), c = std::cos(angle), s = std::sin(angle);
    for (std::size_t k = i; k + 1 < rows.size(); k += d) {
      const double x = rows[k], y = rows[k + 1];
      rows[k] = c * x - s * y;
      rows[k + 1] = s * x + c * y;
    }
  }
}

std::vector<double> GaussianSet(int set) {
  const auto [d, n] = SizeOf(set);
  std::mt19937_64 random(SeedOf(1000, set));
  std::normal_distribution<double> normal;
  std::vector<double> rows;
  for (int k = 0; k < n * d; ++k) rows.push_back(normal(random));
  Turn(rows, d, random);
  return rows;
}

// 2..4 modes of deviation 1 in every direction, 3 to 5 apart, of shares not far from equal; every
// other set with its axes stretched and turned afterwards.
std::vector<double> ModesSet(int set) {
  const auto [d, n] = SizeOf(set);
  std::mt19937_64 random(SeedOf(5000, set));
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const int modes = std::min(2 + set % 3, d + 1);
  const double apart = 3 + 2 * uniform(random);
  std::vector<double> centres, share;
  while (static_cast<int>(centres.size()) < modes * d) {
    std::vector<double> one;
    double norm = 0;
    for (int i = 0; i < d; ++i) one.push_back(normal(random)), norm += one.back() * one.back();
    for (double& x : one) x *= 2 * apart * uniform(random) / std::sqrt(norm);
    bool far = true;
    for (std::size_t c = 0; c < centres.size(); c += d) {
      double square = 0;
      for (int i = 0; i < d; ++i) square += std::pow(one[i] - centres[c + i], 2);
      far = far && square >= apart * apart;
    }
    if (far) centres.insert(centres.end(), one.begin(), one.end());
  }
  for (int m = 0; m < modes; ++m) share.push_back(1 + uniform(random));
  std::discrete_distribution<int> choose(share.begin(), share.end());
  std::vector<double> rows;
  for (int r = 0; r < n; ++r) {
    const int m = choose(random);
    for (int i = 0; i < d; ++i) rows.push_back(centres[m * d + i] + normal(random));
  }
  if (set % 2 == 1) Turn(rows, d, random);
  return rows;
}

int Count(const std::function<std::vector<double>(int)>& make, const std::string& verdict) {
  int count = 0;
  for (int set = 0; set < Sets(); ++set) {
    const Gaussianity found = Verdict(make(set), SizeOf(set).d, set);
    count += found.verdict == verdict;
    if (found.verdict != verdict) {
      std::printf("set %d (d = %d, N = %d): %s\n", set, SizeOf(set).d, SizeOf(set).n,
                  found.words.c_str());
    }
  }
  std::printf("%d of %d sets: %s\n", count, Sets(), verdict.c_str());
  return count;
}

TEST(Verdict, IsGaussianOnGaussianSets) {
  EXPECT_GE(Count(GaussianSet, "gaussian"), std::floor(0.95 * Sets()));
}
TEST(Verdict, IsMultimodalOnSetsWithModes) {
  EXPECT_GE(Count(ModesSet, "multimodal"), std::floor(0.95 * Sets()));
}

// One mode of another shape is not normal, and not several modes either.
TEST(Verdict, IsNotGaussianOnOtherSingleModes) {
  const std::function<double(std::mt19937_64&)> shapes[] = {
      [](auto& r) { return std::exponential_distribution<double>()(r); },
      [](auto& r) { return std::uniform_real_distribution<double>()(r); },
      [](auto& r) { return std::student_t_distribution<double>(5)(r); },
      [](auto& r) { return std::gamma_distribution<double>(3)(r); },
      [](auto& r) { return std::lognormal_distribution<double>(0, 0.7)(r); },
  };
  EXPECT_GE(Count(
                [&](int set) {
                  const auto [d, n] = SizeOf(set);
                  std::mt19937_64 random(SeedOf(9000, set));
                  std::vector<double> rows;
                  for (int k = 0; k < n * d; ++k) rows.push_back(shapes[set % 5](random));
                  return rows;
                },
                "not-gaussian"),
            std::floor(0.95 * Sets()));
}

TEST(Verdict, DoesNotDependOnTheOrderOfTheData) {
  // Alternating modes and sorted ones.
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  std::vector<double> turns, sorted;
  for (int r = 0; r < 3000; ++r) {
    for (int i = 0; i < 4; ++i) {
      turns.push_back(normal(random) + (i == 0 ? 3.5 * (r % 2) : 0));
      sorted.push_back(normal(random) + (i == 0 ? 3.5 * (r / 1500) : 0));
    }
  }
  EXPECT_EQ(Verdict(turns, 4, 1).verdict, "multimodal");
  const Gaussianity found = Verdict(sorted, 4, 1);
  EXPECT_EQ(found.verdict, "multimodal");
  EXPECT_TRUE(found.rejected);
  EXPECT_THAT(found.words, HasSubstr("mergeplan mixture fit"));
}

TEST(Verdict, StoredStepsAreNoModes) {
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  std::vector<double> rows;
  for (int k = 0; k < 8000; ++k) rows.push_back(std::round(4 * normal(random)));
  EXPECT_FALSE(Verdict(rows, 1, 1).modes.by_dip);
  EXPECT_FALSE(Verdict(rows, 2, 1).modes.by_dip);
}

TEST(Verdict, SurvivesLittleAndOddData) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  std::vector<double> few, constant, one, large;
  for (int k = 0; k < 12; ++k) few.push_back(normal(random));
  for (int k = 0; k < 600; ++k) {
    constant.push_back(k % 3 == 0 ? normal(random) : 7);
    one.push_back(k % 2);
    large.push_back(1e70 * normal(random));
  }
  EXPECT_EQ(Verdict(few, 3, 1).verdict, "untested");
  EXPECT_THAT(Verdict({1, 2}, 1, 1).words, HasSubstr("not tested: 2 samples are too few"));
  const Gaussianity flat = Verdict(std::vector<double>(40, 5.0), 2, 1);
  EXPECT_EQ(flat.verdict, "untested");
  EXPECT_FALSE(flat.rejected);
  EXPECT_THAT(flat.words, HasSubstr("the data is constant"));
  EXPECT_EQ(Verdict(constant, 3, 1).verdict, "gaussian");
  EXPECT_NE(Verdict(one, 1, 1).verdict, "gaussian");
  const Gaussianity wide = Verdict(large, 2, 1);
  EXPECT_TRUE(std::isfinite(wide.p));
  EXPECT_TRUE(std::isfinite(wide.mardia.kurtosis));
  EXPECT_FALSE(TestGaussianity(*Estimate(few, {3}), {1, 2}, {}).ok());
}

}  // namespace
}  // namespace mergeplan
