#include "planner/gaussianity/mardia.h"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>
#include <random>

namespace mergeplan {
namespace {

RowMatrix Normals(int n, int q, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  RowMatrix rows(n, q);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < q; ++j) rows(i, j) = normal(random) + (j > 0 ? 0.5 * rows(i, j - 1) : 2);
  }
  return rows;
}

// The double sum over pairs, as Mardia wrote it.
TEST(MardiaTest, EqualsTheSumOverPairs) {
  RowMatrix rows = Normals(150, 4, 2);
  rows.col(1) = rows.col(1).array().square();
  const Eigen::RowVectorXd mean = rows.colwise().mean();
  const RowMatrix x = rows.rowwise() - mean;
  const Eigen::MatrixXd inverse = (x.transpose() * x / 150.0).inverse();
  const Eigen::MatrixXd inner = x * inverse * x.transpose();
  const Mardia found = MardiaTest(rows);
  EXPECT_NEAR(found.skewness, inner.array().cube().sum() / (150.0 * 150), 1e-9);
  EXPECT_NEAR(found.kurtosis, inner.diagonal().array().square().sum() / 150, 1e-9);
}

TEST(MardiaTest, OfOneDimensionIsSquaredSkewnessAndKurtosis) {
  RowMatrix rows(5, 1);
  rows << 1, 2, 3, 5, 9;
  // Deviations -3, -2, -1, 1, 5: m2 = 8, m3 = 18, m4 = 144.8.
  const Mardia found = MardiaTest(rows);
  EXPECT_NEAR(found.skewness, 18.0 * 18 / 512, 1e-12);
  EXPECT_NEAR(found.kurtosis, 144.8 / 64, 1e-12);
}

TEST(MardiaTest, HasTheSizeItClaims) {
  for (const int q : {1, 3, 8}) {
    int skewness = 0, kurtosis = 0;
    for (int round = 0; round < 1000; ++round) {
      const Mardia found = MardiaTest(Normals(300, q, 100 * q + round * 7919));
      skewness += found.skewness_p < 0.05;
      kurtosis += found.kurtosis_p < 0.05;
    }
    EXPECT_NEAR(skewness, 50, 28) << q;  // four standard deviations
    EXPECT_NEAR(kurtosis, 50, 28) << q;
  }
}

TEST(MardiaTest, FindsWhatIsNotNormalAndSurvivesWhatHasNoRank) {
  RowMatrix rows = Normals(400, 3, 5);
  rows.col(0) = rows.col(0).array().cube();
  EXPECT_LT(MardiaTest(rows).skewness_p, 1e-10);
  EXPECT_LT(MardiaTest(rows).kurtosis_p, 1e-10);
  EXPECT_EQ(MardiaTest(Normals(4, 3, 1)).kurtosis_p, 1);
  rows.col(2).setZero();
  EXPECT_EQ(MardiaTest(rows).skewness_p, 1);
}

}  // namespace
}  // namespace mergeplan
