// The propositions about Gaussian mixtures, in plain code of this test: 1 dimension for integrals,
// 2 dimensions with full covariances elsewhere.

#include <Eigen/Dense>
#include <array>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "planner/schedule/schedule.h"
#include "tests/planner/operators/test_util.h"

namespace mergeplan {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

// The optimal teacher for a mixture (eq:gmm_denoiser, eq:weighting_functions,
// eq:gmm_affine_params).
struct Mixture {
  std::vector<double> weights;
  std::vector<VectorXd> means;
  std::vector<MatrixXd> covariances;
  Schedule schedule;

  int K() const { return static_cast<int>(weights.size()); }
  Eigen::Index d() const { return means[0].size(); }
  MatrixXd C(int k, int t) const {
    const double a = schedule.alpha[t], s = schedule.sigma[t];
    return a * a * covariances[k] + s * s * MatrixXd::Identity(d(), d());
  }
  // gamma_{k,t}(z).
  VectorXd Posterior(const VectorXd& z, int t) const {
    VectorXd log_weight(K());
    for (int k = 0; k < K(); ++k) {
      const Eigen::LLT<MatrixXd> llt(C(k, t));
      const VectorXd centred = z - schedule.alpha[t] * means[k];
      log_weight[k] = std::log(weights[k]) - 0.5 * centred.dot(llt.solve(centred)) -
                      llt.matrixLLT().diagonal().array().log().sum();
    }
    const VectorXd w = (log_weight.array() - log_weight.maxCoeff()).exp();
    return w / w.sum();
  }
  VectorXd Denoise(const VectorXd& z, int t) const {
    const double a = schedule.alpha[t];
    const VectorXd w = Posterior(z, t);
    VectorXd x = VectorXd::Zero(d());
    for (int k = 0; k < K(); ++k) {
      x += w[k] * (means[k] + a * covariances[k] * C(k, t).llt().solve(z - a * means[k]));
    }
    return x;
  }
  MatrixXd A(int k, int t) const {
    const double aa = schedule.alpha[t - 1] * schedule.alpha[t];
    const double ss = schedule.sigma[t - 1] * schedule.sigma[t];
    return (aa * covariances[k] + ss * MatrixXd::Identity(d(), d())) * C(k, t).inverse();
  }
  VectorXd b(int k, int t) const {
    return schedule.alpha[t - 1] * means[k] - schedule.alpha[t] * (A(k, t) * means[k]);
  }
  // eq:gmm_single_operator_moe.
  VectorXd Step(const VectorXd& z, int t) const {
    const VectorXd w = Posterior(z, t);
    VectorXd out = VectorXd::Zero(d());
    for (int k = 0; k < K(); ++k) out += w[k] * (A(k, t) * z + b(k, t));
    return out;
  }
  // T_k: `count` steps from level t.
  VectorXd Steps(VectorXd z, int t, int count) const {
    for (int i = 0; i < count; ++i) z = Step(z, t - i);
    return z;
  }
  VectorXd Sample(std::mt19937_64& rng, int t) const {
    std::discrete_distribution<int> pick(weights.begin(), weights.end());
    std::normal_distribution<double> normal;
    const int k = pick(rng);
    const VectorXd e = VectorXd::NullaryExpr(d(), [&] { return normal(rng); });
    return schedule.alpha[t] * means[k] + C(k, t).llt().matrixL() * e;
  }
};

Mixture RandomMixture(std::mt19937_64& rng, int K, int d, int T) {
  Mixture m;
  m.schedule = CosineSchedule(T);
  std::normal_distribution<double> normal;
  for (int k = 0; k < K; ++k) {
    m.weights.push_back(Uniform(rng, 0.2, 1));
    m.means.push_back(VectorXd::NullaryExpr(d, [&] { return 2 * normal(rng); }));
    const MatrixXd f = MatrixXd::NullaryExpr(d, d, [&] { return 0.7 * normal(rng); });
    m.covariances.push_back(f * f.transpose());
  }
  double sum = 0;
  for (double w : m.weights) sum += w;
  for (double& w : m.weights) w /= sum;
  return m;
}

double Density(double x, double mean, double variance) {
  return std::exp(-(x - mean) * (x - mean) / (2 * variance)) /
         std::sqrt(2 * std::numbers::pi * variance);
}

// The denoiser is E[x_0 | z_t], by integrating over x_0.
TEST(Mixture, prop_optimal_mixture_denoising_estimator) {
  std::mt19937_64 rng(41);
  for (int trial = 0; trial < 10; ++trial) {
    Mixture m = RandomMixture(rng, 3, 1, 8);
    for (MatrixXd& cov : m.covariances) cov.array() += 0.05;
    for (int t : {1, 4, 8}) {
      const VectorXd z = m.Sample(rng, t);
      double top = 0, bottom = 0;
      const double h = 1e-3;  // the trapezoidal rule is exact to rounding for such densities
      for (int i = -20000; i <= 20000; ++i) {
        const double x = i * h;
        double prior = 0;
        for (int k = 0; k < 3; ++k) {
          prior += m.weights[k] * Density(x, m.means[k][0], m.covariances[k](0, 0));
        }
        const double joint =
            prior * Density(z[0], m.schedule.alpha[t] * x, std::pow(m.schedule.sigma[t], 2));
        top += x * joint;
        bottom += joint;
      }
      EXPECT_NEAR(m.Denoise(z, t)[0], top / bottom, 1e-9);
    }
  }
}

// The DDIM update around that denoiser is a mixture of affine experts.
TEST(Mixture, cor_gmm_single_step) {
  std::mt19937_64 rng(42);
  for (int trial = 0; trial < 20; ++trial) {
    const Mixture m = RandomMixture(rng, 4, 2, 6);
    for (int t = 1; t <= 6; ++t) {
      const VectorXd z = m.Sample(rng, t), x0 = m.Denoise(z, t);
      const VectorXd want = m.schedule.alpha[t - 1] * x0 + m.schedule.sigma[t - 1] /
                                                               m.schedule.sigma[t] *
                                                               (z - m.schedule.alpha[t] * x0);
      EXPECT_LT((m.Step(z, t) - want).norm(), 1e-11 * (1 + want.norm()));
    }
  }
}

// The K^2 affine terms of two steps and their weights at z.
struct TwoStep {
  std::vector<double> w;    // K^2, pair (i, j) at i K + j
  std::vector<VectorXd> g;  // g_ij(z)
};

TwoStep Expand(const Mixture& m, const VectorXd& z, int t) {
  const VectorXd first = m.Posterior(z, t), second = m.Posterior(m.Step(z, t), t - 1);
  TwoStep out;
  for (int i = 0; i < m.K(); ++i) {
    for (int j = 0; j < m.K(); ++j) {
      out.w.push_back(first[i] * second[j]);
      const MatrixXd a = m.A(j, t - 1) * m.A(i, t);
      const VectorXd b = m.A(j, t - 1) * m.b(i, t) + m.b(j, t - 1);
      out.g.push_back(a * z + b);
    }
  }
  return out;
}

TEST(Mixture, lem_two_step_moe_expansion) {
  std::mt19937_64 rng(43);
  for (int trial = 0; trial < 20; ++trial) {
    const Mixture m = RandomMixture(rng, 3, 2, 6);
    for (int t = 2; t <= 6; ++t) {
      const VectorXd z = m.Sample(rng, t);
      const TwoStep two = Expand(m, z, t);
      double total = 0;
      VectorXd sum = VectorXd::Zero(2);
      for (size_t p = 0; p < two.w.size(); ++p) {
        total += two.w[p];
        sum += two.w[p] * two.g[p];
      }
      EXPECT_NEAR(total, 1, 1e-14);
      const VectorXd want = m.Steps(z, t, 2);
      EXPECT_LT((sum - want).norm(), 1e-11 * (1 + want.norm()));
    }
  }
}

// Under the empirical law of a sample: the student that takes every cluster's weight and its best
// affine map is no worse than the sum of the clusters' residuals, and each residual is a bias and a
// variance. A K-component student exists that does at least so well, so this bounds the infimum.
TEST(Mixture, thm_two_step_merging_error) {
  std::mt19937_64 rng(44);
  for (int trial = 0; trial < 10; ++trial) {
    const int K = 3, t = RandomInt(rng, 2, 6);
    const Mixture m = RandomMixture(rng, K, 2, 6);
    std::vector<VectorXd> z;
    std::vector<TwoStep> two;
    for (int n = 0; n < 400; ++n) {
      z.push_back(m.Sample(rng, t));
      two.push_back(Expand(m, z.back(), t));
    }
    std::array<int, 9> cluster{};
    for (int& c : cluster) c = RandomInt(rng, 0, K - 1);
    // Best affine map per cluster by weighted least squares on (z, 1).
    std::vector<MatrixXd> maps;
    for (int k = 0; k < K; ++k) {
      MatrixXd gram = 1e-12 * MatrixXd::Identity(3, 3), moment = MatrixXd::Zero(2, 3);
      for (size_t n = 0; n < z.size(); ++n) {
        const VectorXd x = z[n].homogeneous();
        for (int p = 0; p < 9; ++p) {
          if (cluster[p] != k) continue;
          gram += two[n].w[p] * x * x.transpose();
          moment += two[n].w[p] * two[n].g[p] * x.transpose();
        }
      }
      maps.push_back(gram.ldlt().solve(moment.transpose()).transpose());
    }
    double student_loss = 0, bound = 0;
    for (size_t n = 0; n < z.size(); ++n) {
      const VectorXd x = z[n].homogeneous();
      VectorXd student = VectorXd::Zero(2);
      for (int k = 0; k < K; ++k) {
        double total = 0, residual = 0, variance = 0;
        VectorXd centre = VectorXd::Zero(2);
        const VectorXd expert = maps[k] * x;
        for (int p = 0; p < 9; ++p) {
          if (cluster[p] != k) continue;
          total += two[n].w[p];
          centre += two[n].w[p] * two[n].g[p];
          residual += two[n].w[p] * (expert - two[n].g[p]).squaredNorm();
        }
        student += total * expert;
        bound += residual;
        if (total < 1e-200) continue;
        centre /= total;
        for (int p = 0; p < 9; ++p) {
          if (cluster[p] == k) variance += two[n].w[p] * (two[n].g[p] - centre).squaredNorm();
        }
        // eq:bias_variance_decomp.
        EXPECT_NEAR(residual, total * (expert - centre).squaredNorm() + variance,
                    1e-10 * (1 + residual));
      }
      student_loss += (student - m.Steps(z[n], t, 2)).squaredNorm();
    }
    EXPECT_LE(student_loss, bound * (1 + 1e-10));
    EXPECT_GT(bound, 0);
  }
}

// Two students and the one that merges them, all imperfect, in one dimension; L is the largest
// slope of T_{k2} on the range that is met.
TEST(Mixture, thm_error_propagation_two_stage_merge) {
  std::mt19937_64 rng(45);
  for (int trial = 0; trial < 12; ++trial) {
    Mixture m = RandomMixture(rng, 3, 1, 8);
    for (MatrixXd& cov : m.covariances) cov.array() += 0.05;
    const int t = 7, k1 = RandomInt(rng, 1, 3), k2 = RandomInt(rng, 1, 3);
    const double e1 = Uniform(rng, 0, 0.5), e2 = Uniform(rng, 0, 0.5), e3 = Uniform(rng, 0, 0.5);
    const auto teacher = [&](double z, int level, int count) {
      return m.Steps(VectorXd::Constant(1, z), level, count)[0];
    };
    const auto f1 = [&](double z) { return teacher(z, t, k1) + e1 * std::sin(3 * z); };
    const auto f2 = [&](double z) { return (1 - e2) * teacher(z, t - k1, k2) + e2; };
    const auto f = [&](double z) { return f2(f1(z)) + e3 * std::cos(z); };
    std::vector<double> z;
    double low = 1e9, high = -1e9;
    for (int n = 0; n < 500; ++n) {
      z.push_back(m.Sample(rng, t)[0]);
      for (double at : {f1(z.back()), teacher(z.back(), t, k1)}) {
        low = std::min(low, at);
        high = std::max(high, at);
      }
    }
    double lipschitz = 0;
    const int cells = 1500;
    for (int i = 0; i < cells; ++i) {
      const double a = low + (high - low) * i / cells, b = low + (high - low) * (i + 1) / cells;
      const double slope = (teacher(b, t - k1, k2) - teacher(a, t - k1, k2)) / (b - a);
      lipschitz = std::max(lipschitz, std::abs(slope));
    }
    double final_error = 0, merge = 0, second = 0, first = 0;
    for (double x : z) {
      const double y = f1(x);
      final_error += std::pow(f(x) - teacher(x, t, k1 + k2), 2);
      merge += std::pow(f(x) - f2(y), 2);
      second += std::pow(f2(y) - teacher(y, t - k1, k2), 2);
      first += std::pow(y - teacher(x, t, k1), 2);
    }
    EXPECT_LE(final_error,
              (2 * merge + 4 * second + 4 * lipschitz * lipschitz * first) * (1 + 1e-6));
    EXPECT_GT(final_error, 0);
  }
}

}  // namespace
}  // namespace mergeplan
