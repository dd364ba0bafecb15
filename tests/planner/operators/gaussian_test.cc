// Gaussian data in full matrices: denoiser, single step, composite, surrogate, contraction, W2.

#include "planner/operators/gaussian.h"

#include <Eigen/Cholesky>
#include <Eigen/Dense>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "planner/operators/model.h"
#include "planner/operators/w2.h"
#include "tests/planner/operators/test_util.h"

namespace mergeplan {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

MatrixXd RandomMatrix(std::mt19937_64& rng, int rows, int cols) {
  std::normal_distribution<double> normal;
  return MatrixXd::NullaryExpr(rows, cols, [&] { return normal(rng); });
}

// Q diag(variances) Q^T with a random orthogonal Q.
MatrixXd RandomCovariance(std::mt19937_64& rng, const VectorXd& variances) {
  const auto d = static_cast<int>(variances.size());
  const MatrixXd q = Eigen::HouseholderQR<MatrixXd>(RandomMatrix(rng, d, d)).householderQ();
  return q * variances.asDiagonal() * q.transpose();
}

// E |A z_t + b - x_0|^2 from the joint law of x_0 and z_t = alpha x_0 + sigma eps.
double DenoisingLoss(const AffineMap& map, const VectorXd& mean, const MatrixXd& cov, double alpha,
                     double sigma) {
  const auto d = mean.size();
  // A z + b - x = (alpha A - I) (x - mean) + sigma A eps + constant.
  const MatrixXd on_data = alpha * map.A - MatrixXd::Identity(d, d);
  const VectorXd constant = map.A * (alpha * mean) + map.b - mean;
  return (on_data * cov * on_data.transpose()).trace() + sigma * sigma * map.A.squaredNorm() +
         constant.squaredNorm();
}

// prop:optimal_denoising_estimator, in its general form: no other affine map has a smaller loss,
// and the map is the regression of x_0 on z_t.
TEST(Gaussian, prop_optimal_denoising_estimator) {
  std::mt19937_64 rng(1);
  for (int trial = 0; trial < 20; ++trial) {
    const int d = RandomInt(rng, 1, 5), T = RandomInt(rng, 2, 8);
    VectorXd variances(d);
    for (double& v : variances) v = LogUniform(rng, 0.05, 20);
    const MatrixXd cov = RandomCovariance(rng, variances);
    const VectorXd mean = RandomMatrix(rng, d, 1);
    const Schedule schedule = RandomPreserving(rng, T);
    const FullGaussianTeacher teacher = FullGaussianTeacher::Create(schedule, mean, cov).value();
    for (int t = 1; t <= T; ++t) {
      const double alpha = schedule.alpha[t], sigma = schedule.sigma[t];
      const AffineMap best = teacher.Denoiser(t);
      const MatrixXd n = alpha * alpha * cov + sigma * sigma * MatrixXd::Identity(d, d);
      const MatrixXd regression = n.llt().solve(alpha * cov).transpose();
      EXPECT_LT((best.A - regression).norm(), 1e-12 * (1 + regression.norm()));
      const double loss = DenoisingLoss(best, mean, cov, alpha, sigma);
      for (int other = 0; other < 10; ++other) {
        AffineMap moved = best;
        moved.A += 0.01 * RandomMatrix(rng, d, d);
        moved.b += 0.01 * RandomMatrix(rng, d, 1);
        EXPECT_GT(DenoisingLoss(moved, mean, cov, alpha, sigma), loss);
      }
    }
  }
}

// The diagonal form is the general one in the eigenbasis, and needs no invertible covariance.
TEST(Gaussian, DiagonalFormAgreesWithTheGeneralOne) {
  const std::vector<double> lambda = {7, 1, 0.3, 0};
  const Schedule schedule = CosineSchedule(6);
  const VectorXd variances = Eigen::Map<const VectorXd>(lambda.data(), 4);
  const FullGaussianTeacher teacher =
      FullGaussianTeacher::Create(schedule, VectorXd::Zero(4), MatrixXd(variances.asDiagonal()))
          .value();
  const Model model =
      Model::Create(SpecOf(schedule, lambda, Budget::Flow(1), Init::kChild)).value();
  for (int t = 1; t <= 6; ++t) {
    for (int k = 0; k < 4; ++k) {
      EXPECT_NEAR(teacher.Denoiser(t).A(k, k), DenoiserGain(schedule, t, lambda[k]), 1e-14);
      EXPECT_NEAR(teacher.Step(t).A(k, k), JumpGain(schedule, t, t, lambda[k]), 1e-14);
      EXPECT_EQ(model.A(t)[k], JumpGain(schedule, t, t, lambda[k]));
      EXPECT_EQ(model.n(t)[k], InputVariance(schedule, t, lambda[k]));
    }
    EXPECT_EQ(teacher.Step(t).b.norm(), 0);
  }
  for (int k = 0; k < 4; ++k) {
    EXPECT_NEAR(teacher.Composite(1, 6).A(k, k), model.tau(Reference::kTeacher)[k], 1e-14);
    EXPECT_NEAR(teacher.Surrogate().A(k, k), model.tau(Reference::kSurrogate)[k], 1e-14);
  }
}

// cor:optimal_single_operator: the step is the DDIM update around the optimal denoiser, with a mean
// and off-diagonal covariance; composites are steps after one another.
TEST(Gaussian, cor_optimal_single_operator) {
  std::mt19937_64 rng(2);
  for (int trial = 0; trial < 20; ++trial) {
    const int d = RandomInt(rng, 1, 5), T = RandomInt(rng, 2, 8);
    VectorXd variances(d);
    for (double& v : variances) v = LogUniform(rng, 0.05, 20);
    if (trial % 4 == 0) variances[0] = 0;
    const Schedule schedule = trial % 2 == 0 ? RandomPreserving(rng, T) : RandomFlow(rng, T);
    const FullGaussianTeacher teacher =
        FullGaussianTeacher::Create(schedule, RandomMatrix(rng, d, 1),
                                    RandomCovariance(rng, variances))
            .value();
    const VectorXd start = RandomMatrix(rng, d, 1);
    VectorXd z = start;
    for (int t = T; t >= 1; --t) {
      const VectorXd x0 = teacher.Denoiser(t)(z);
      const VectorXd noise = (z - schedule.alpha[t] * x0) / schedule.sigma[t];
      const VectorXd want = schedule.alpha[t - 1] * x0 + schedule.sigma[t - 1] * noise;
      z = teacher.Step(t)(z);
      EXPECT_LT((z - want).norm(), 1e-12 * (1 + want.norm()));
      EXPECT_LT((teacher.Composite(t, T)(start) - z).norm(), 1e-11 * (1 + z.norm()));
    }
    const AffineMap two = Compose(teacher.Step(T - 1), teacher.Step(T));
    EXPECT_LT((two.A - teacher.Composite(T - 1, T).A).norm(), 1e-12 * (1 + two.A.norm()));
    EXPECT_LT((two.b - teacher.Composite(T - 1, T).b).norm(), 1e-12 * (1 + two.b.norm()));
  }
}

// def:surrogate_composite_operator: where the variance is above one, steps below one count as one.
TEST(Gaussian, def_surrogate_composite_operator) {
  std::mt19937_64 rng(3);
  VectorXd variances(3);
  variances << 1.5, 1.0, 0.4;
  const MatrixXd cov = RandomCovariance(rng, variances);
  const VectorXd mean = RandomMatrix(rng, 3, 1);
  const Schedule schedule = CosineSchedule(8);
  const FullGaussianTeacher teacher = FullGaussianTeacher::Create(schedule, mean, cov).value();
  VectorXd gains = VectorXd::Ones(3);
  for (int k = 0; k < 3; ++k) {
    for (int t = 1; t <= 8; ++t) {
      const double a = JumpGain(schedule, t, t, variances[k]);
      gains[k] *= variances[k] > 1 && a < 1 ? 1 : a;
    }
  }
  const AffineMap surrogate = teacher.Surrogate();
  const MatrixXd& u = teacher.basis();
  EXPECT_LT((u.transpose() * surrogate.A * u - MatrixXd(gains.asDiagonal())).norm(), 1e-12);
  EXPECT_LT((surrogate(VectorXd::Zero(3)) - mean).norm(), 1e-12);  // alpha_T = 0: noise around it
  EXPECT_GT(gains[0], teacher.Composite(1, 8).A.eigenvalues().real().maxCoeff());
}

// prop:teacher_contracts_covariance: |T(z)_i| <= sqrt(lambda_i) |z_i| in every coordinate, and the
// output covariance is below the data's as a matrix.
TEST(Gaussian, prop_teacher_contracts_covariance) {
  std::mt19937_64 rng(4);
  for (int trial = 0; trial < 30; ++trial) {
    const int d = RandomInt(rng, 1, 5), T = RandomInt(rng, 1, 40);
    VectorXd variances(d);
    for (double& v : variances) v = LogUniform(rng, 1e-3, 1e3);
    const bool singular = trial % 3 == 0;
    if (singular) variances[0] = 0;
    const MatrixXd cov = RandomCovariance(rng, variances);
    const FullGaussianTeacher teacher =
        FullGaussianTeacher::Create(trial % 2 == 0 ? CosineSchedule(T) : RandomPreserving(rng, T),
                                    VectorXd::Zero(d), cov)
            .value();
    const AffineMap all = teacher.Composite(1, T);
    const MatrixXd loss = cov - all.A * all.A.transpose();
    const VectorXd eigenvalues = Eigen::SelfAdjointEigenSolver<MatrixXd>(loss).eigenvalues();
    if (singular) {
      EXPECT_GE(eigenvalues.minCoeff(), -1e-12 * cov.norm());
    } else {
      EXPECT_GT(eigenvalues.minCoeff(), 0);
    }
    VectorXd quantity = teacher.CovarianceLoss();
    for (int k = 0; k < d; ++k) {
      if (teacher.variances()[k] > 1e-10) {
        EXPECT_GT(quantity[k], 0) << "strict for a positive variance";
      }
    }
    std::sort(quantity.begin(), quantity.end());
    EXPECT_LT((quantity - eigenvalues).norm(), 1e-12 * (1 + cov.norm()));
  }
  // Equality for a variance of zero: both sides are zero.
  EXPECT_EQ(JumpGain(CosineSchedule(5), 1, 1, 0), 0);
}

TEST(Gaussian, TeacherRefusesWhatIsNoCovariance) {
  const Schedule schedule = CosineSchedule(4);
  const VectorXd mean = VectorXd::Zero(2);
  MatrixXd cov(2, 2);
  cov << 1, 0.5, -0.5, 1;
  EXPECT_FALSE(FullGaussianTeacher::Create(schedule, mean, cov).ok());
  cov << 1, 2, 2, 1;
  const auto negative = FullGaussianTeacher::Create(schedule, mean, cov);
  EXPECT_NE(negative.status().message().find("eigenvalue -1"), absl::string_view::npos)
      << negative.status();
  cov(0, 0) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(FullGaussianTeacher::Create(schedule, mean, cov).ok());
  EXPECT_FALSE(FullGaussianTeacher::Create(schedule, mean, MatrixXd::Identity(3, 3)).ok());
  EXPECT_FALSE(FullGaussianTeacher::Create(schedule, VectorXd(), MatrixXd()).ok());
}

// eq:w2_gaussian_closed_form against the trace of the square root of a 2 x 2 matrix in closed form:
// tr M^{1/2} = sqrt(tr M + 2 sqrt(det M)).
TEST(W2, eq_w2_gaussian_closed_form) {
  std::mt19937_64 rng(5);
  for (int trial = 0; trial < 50; ++trial) {
    VectorXd v1(2), v2(2);
    for (double& v : v1) v = LogUniform(rng, 1e-3, 1e3);
    for (double& v : v2) v = LogUniform(rng, 1e-3, 1e3);
    const MatrixXd s1 = RandomCovariance(rng, v1), s2 = RandomCovariance(rng, v2);
    const VectorXd m1 = RandomMatrix(rng, 2, 1), m2 = RandomMatrix(rng, 2, 1);
    const double cross =
        std::sqrt((s1 * s2).trace() + 2 * std::sqrt(v1[0] * v1[1] * v2[0] * v2[1]));
    const double want = (m1 - m2).squaredNorm() + s1.trace() + s2.trace() - 2 * cross;
    const double have = W2Squared(m1, s1, m2, s2).value();
    EXPECT_NEAR(have, want, 1e-11 * (s1.trace() + s2.trace()));
    EXPECT_NEAR(have, W2Squared(m2, s2, m1, s1).value(), 1e-12 * (s1.trace() + s2.trace()));
    // It is the least transport cost: the optimal map costs this, another coupling costs more.
    EXPECT_LT(have, (m1 - m2).squaredNorm() + s1.trace() + s2.trace());
  }
}

TEST(W2, DiagonalFormIsTheGeneralOneInACommonBasis) {
  std::mt19937_64 rng(6);
  for (int trial = 0; trial < 20; ++trial) {
    const int d = RandomInt(rng, 1, 6);
    const MatrixXd q = Eigen::HouseholderQR<MatrixXd>(RandomMatrix(rng, d, d)).householderQ();
    VectorXd v1(d), v2(d);
    for (double& v : v1) v = LogUniform(rng, 1e-2, 1e2);
    for (double& v : v2) v = LogUniform(rng, 1e-2, 1e2);
    const VectorXd m1 = RandomMatrix(rng, d, 1), m2 = RandomMatrix(rng, d, 1);
    const double general = W2Squared(q * m1, q * v1.asDiagonal() * q.transpose(), q * m2,
                                     q * v2.asDiagonal() * q.transpose())
                               .value();
    const auto span = [](const VectorXd& v) { return absl::MakeConstSpan(v.data(), v.size()); };
    const double diagonal = W2SquaredDiagonal(span(m1), span(v1), span(m2), span(v2));
    EXPECT_NEAR(general, diagonal, 1e-12 * (v1.sum() + v2.sum()));
  }
}

TEST(W2, SingularCovariances) {
  const VectorXd zero = VectorXd::Zero(2);
  MatrixXd line(2, 2), other(2, 2);
  line << 4, 4, 4, 4;     // variance 8 along (1, 1)
  other << 1, -1, -1, 1;  // variance 2 across
  EXPECT_NEAR(W2Squared(zero, line, zero, other).value(), 10, 1e-12);
  EXPECT_NEAR(W2Squared(zero, line, zero, line).value(), 0, 1e-13);
  EXPECT_GE(W2Squared(zero, line, zero, line).value(), 0);
  EXPECT_NEAR(W2Squared(zero, line, zero, MatrixXd::Zero(2, 2)).value(), 8, 1e-12);
  EXPECT_EQ(W2Squared(zero, MatrixXd::Zero(2, 2), zero, MatrixXd::Zero(2, 2)).value(), 0);
  EXPECT_FALSE(W2Squared(zero, line, VectorXd::Zero(3), line).ok());
  EXPECT_FALSE(W2Squared(zero, line, zero, -line).ok());
}

// eq:w2_diag_linear_maps: the objective is the distance between the outputs for unit noise.
TEST(W2, eq_w2_diag_linear_maps) {
  const std::vector<double> a = {0.9, 1.4, 0.2}, b = {0.7, 1.5, 0};
  const auto diagonal = [](const std::vector<double>& x) {
    return MatrixXd(Eigen::Map<const VectorXd>(x.data(), 3).cwiseAbs2().asDiagonal());
  };
  const double general =
      W2Squared(VectorXd::Zero(3), diagonal(a), VectorXd::Zero(3), diagonal(b)).value();
  EXPECT_NEAR(W2SquaredLinearMaps(a, b), general, 1e-13);
  EXPECT_NEAR(general, 0.04 + 0.01 + 0.04, 1e-13);
}

}  // namespace
}  // namespace mergeplan
