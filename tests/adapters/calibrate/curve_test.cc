// Curves of what training leaves, and the least squares behind them.
#include "adapters/calibrate/curve.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <random>

namespace mergeplan::calibrate {
namespace {

// Every set of columns solved without limits; the best one whose numbers are all >= 0.
double BestBySets(const Eigen::MatrixXd& a, const Eigen::VectorXd& b) {
  const auto n = static_cast<int>(a.cols());
  double best = b.squaredNorm();
  for (int set = 1; set < 1 << n; ++set) {
    std::vector<int> chosen;
    for (int k = 0; k < n; ++k) {
      if (set >> k & 1) chosen.push_back(k);
    }
    const Eigen::MatrixXd part = a(Eigen::all, chosen);
    const Eigen::VectorXd x = part.completeOrthogonalDecomposition().solve(b);
    if (x.minCoeff() < 0) continue;
    best = std::min(best, (part * x - b).squaredNorm());
  }
  return best;
}

TEST(NonNegativeLeastSquares, IsTheBestOfAllSets) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 300; ++trial) {
    const int rows = 1 + static_cast<int>(random() % 7),
              columns = 1 + static_cast<int>(random() % 6);
    Eigen::MatrixXd a(rows, columns);
    Eigen::VectorXd b(rows);
    for (int r = 0; r < rows; ++r) {
      b[r] = normal(random);
      for (int k = 0; k < columns; ++k) a(r, k) = normal(random);
    }
    // Some columns twice, some nothing.
    if (trial % 3 == 0) a.col(columns - 1) = a.col(0);
    if (trial % 5 == 0) a.col(0).setZero();
    std::vector<double> flat;
    for (int r = 0; r < rows; ++r) {
      for (int k = 0; k < columns; ++k) flat.push_back(a(r, k));
    }
    const std::vector<double> x =
        NonNegativeLeastSquares(flat, std::vector<double>(b.data(), b.data() + rows), columns);
    double squares = 0;
    for (int r = 0; r < rows; ++r) {
      double sum = 0;
      for (int k = 0; k < columns; ++k) {
        EXPECT_GE(x[k], 0);
        sum += a(r, k) * x[k];
      }
      squares += (sum - b[r]) * (sum - b[r]);
    }
    EXPECT_NEAR(squares, BestBySets(a, b), 1e-9) << "trial " << trial;
  }
}

std::vector<std::int64_t> Updates(std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::int64_t u = 1; u < most; u *= 2) out.push_back(u);
  out.push_back(most);
  return out;
}

TEST(LossCurve, RecoversWhatIsOfItsKind) {
  const auto law = [](double u) {
    return 0.09 + 0.5 * std::exp(-u / 4) + 0.41 * std::exp(-u / 32);
  };
  std::vector<double> shares;
  for (const std::int64_t u : Updates(256)) shares.push_back(law(static_cast<double>(u)));
  const LossCurve curve = LossCurve::Fit(Updates(256), shares);
  for (const double u : {0.0, 1.0, 3.0, 50.0, 256.0, 1000.0}) {
    EXPECT_NEAR(curve.At(u), law(u), 2e-3 * law(u)) << u;
  }
  EXPECT_NEAR(curve.Unlearnt(), 0.09, 1e-3);
  EXPECT_LT(curve.scatter(), 1e-3);
}

// A linear student under SGD: the squared error is a sum of gamma^2u, whose rates lie between those
// of the grid; it is followed within 5 %, between the points too.
TEST(LossCurve, FollowsLinearStudents) {
  const auto law = [](double u) {
    return (std::pow(0.99, 2 * u) + std::pow(0.93, 2 * u) + 2 * std::pow(0.8, 2 * u)) / 4;
  };
  std::vector<double> shares;
  for (const std::int64_t u : Updates(128)) shares.push_back(law(static_cast<double>(u)));
  const LossCurve curve = LossCurve::Fit(Updates(128), shares);
  for (int u = 0; u <= 128; ++u) EXPECT_NEAR(curve.At(u), law(u), 0.05 * law(u)) << u;
}

TEST(LossCurve, FallsWithAConvexRootWhateverWasMeasured) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(-3, 1);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<double> shares;
    const std::vector<std::int64_t> updates = Updates(1 + static_cast<int>(random() % 500));
    for (std::size_t k = 0; k < updates.size(); ++k) {
      shares.push_back(random() % 20 == 0 ? 0 : std::pow(10, uniform(random)));
    }
    const LossCurve curve = LossCurve::Fit(updates, shares);
    const auto root = [&](double u) { return std::sqrt(curve.At(u)); };
    for (double u = 0; u < 600; u += 1) {
      ASSERT_TRUE(std::isfinite(curve.At(u)) && curve.At(u) >= 0);
      EXPECT_LE(curve.At(u + 1), curve.At(u) * (1 + 1e-12));
      EXPECT_LE(2 * root(u + 1), (root(u) + root(u + 2)) * (1 + 1e-12));
    }
  }
}

TEST(LossCurve, OfOnePointAndOfNothing) {
  const LossCurve one = LossCurve::Fit(std::vector<std::int64_t>{1}, std::vector<double>{0.25});
  EXPECT_NEAR(one.At(1), 0.25, 0.05);
  const LossCurve none = LossCurve::Fit(std::vector<std::int64_t>{1, 8}, std::vector<double>{0, 0});
  EXPECT_LE(none.At(8), 1);
  EXPECT_TRUE(std::isfinite(none.scatter()));
}

}  // namespace
}  // namespace mergeplan::calibrate
