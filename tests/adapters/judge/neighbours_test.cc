#include "adapters/judge/neighbours.h"

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
using Set = std::vector<std::vector<double>>;

std::vector<double> Flat(const Set& set) {
  std::vector<double> out;
  for (const auto& row : set) out.insert(out.end(), row.begin(), row.end());
  return out;
}

TEST(Neighbours, AgreeWithBruteForceOnRandomSets) {
  std::mt19937_64 bits(3);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 120; ++trial) {
    const int d = 1 + trial % 5, k = 1 + trial % 4;
    const auto draw = [&](int rows, double shift, double scale) {
      Set set;
      for (int i = 0; i < rows; ++i) {
        std::vector<double> row;
        // Whole numbers make ties and duplicates.
        for (int c = 0; c < d; ++c) {
          const double x = shift + scale * normal(bits);
          row.push_back(trial % 3 == 0 ? std::round(x) : x);
        }
        set.push_back(row);
      }
      return set;
    };
    const Set r = draw(k + 1 + trial % 30, 0, 1), g = draw(k + 1 + trial % 17, 0.3, 1.5);
    const auto found = NeighbourPrecisionRecall(Flat(r), Flat(g), d, k);
    ASSERT_TRUE(found.ok()) << found.status();
    const auto [precision, recall] = oracle::PlainPrecisionRecall(r, g, k);
    EXPECT_EQ(found->precision, precision) << trial;
    EXPECT_EQ(found->recall, recall) << trial;
  }
}

TEST(Neighbours, KnownSets) {
  const std::vector<double> line = {0, 1, 2, 3, 4}, far = {100, 101, 102, 103, 104};
  EXPECT_EQ(NeighbourPrecisionRecall(line, line, 1, 1)->precision, 1);
  EXPECT_EQ(NeighbourPrecisionRecall(line, line, 1, 1)->recall, 1);
  EXPECT_EQ(NeighbourPrecisionRecall(line, far, 1, 3)->precision, 0);
  EXPECT_EQ(NeighbourPrecisionRecall(line, far, 1, 3)->recall, 0);
  // One mode only: precise, but half of the reference is missing.
  const std::vector<double> both = {0, 1, 2, 3, 100, 101, 102, 103}, left = {0, 1, 2, 3};
  EXPECT_EQ(NeighbourPrecisionRecall(both, left, 1, 1)->precision, 1);
  EXPECT_EQ(NeighbourPrecisionRecall(both, left, 1, 1)->recall, 0.5);
  // A set that has collapsed to one point has balls of radius 0.
  const std::vector<double> point(5, 2.0);
  EXPECT_EQ(NeighbourPrecisionRecall(line, point, 1, 3)->precision, 1);
  EXPECT_EQ(NeighbourPrecisionRecall(line, point, 1, 3)->recall, 0.2);
}

TEST(Neighbours, SayWhatIsWrong) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> four = {1, 2, 3, 4};
  EXPECT_THAT(NeighbourPrecisionRecall({1, 2, 3}, four, 1, 3).status().message(),
              HasSubstr("the reference set has 3 samples, expected more than the 3"));
  EXPECT_THAT(NeighbourPrecisionRecall(four, {}, 1, 3).status().message(),
              HasSubstr("the generated set has 0 samples"));
  EXPECT_THAT(NeighbourPrecisionRecall(four, four, 3, 1).status().message(),
              HasSubstr("rows of 3"));
  EXPECT_THAT(NeighbourPrecisionRecall(four, {1, 2, nan, 4}, 1, 3).status().message(),
              HasSubstr("not finite"));
  EXPECT_FALSE(NeighbourPrecisionRecall(four, four, 1, 0).ok());
}

}  // namespace
}  // namespace mergeplan::judge
