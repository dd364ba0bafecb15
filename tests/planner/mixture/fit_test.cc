// Fitted mixtures against closed forms, against densities written out, and against the truth.
#include "planner/mixture/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <Eigen/Eigenvalues>
#include <cmath>
#include <numbers>
#include <random>

namespace mergeplan {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using ::testing::HasSubstr;

// n samples from `k` normal clouds in d dimensions, `apart` deviations between neighbouring
// centres.
std::vector<double> Clouds(int n, int d, int k, double apart, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> choose(0, k - 1);
  std::vector<double> rows;
  for (int r = 0; r < n; ++r) {
    const int c = choose(random);
    for (int i = 0; i < d; ++i)
      rows.push_back((i == c % d ? apart * (1 + c / d) : 0) + normal(random));
  }
  return rows;
}

MixtureFitOptions Options(CovarianceKind kind, int components, int rank = 0) {
  MixtureFitOptions options;
  options.kind = kind;
  options.components = components;
  options.rank = rank;
  return options;
}

// The density as it is defined, by inverse and determinant.
double LogLikelihoodPlainly(const MixtureSpec& spec, const std::vector<double>& rows) {
  const int d = spec.dimensions;
  const GaussianMixture mixture = *GaussianMixture::Create(spec);
  std::vector<MatrixXd> inverse;
  std::vector<double> peak;
  for (int k = 0; k < spec.components; ++k) {
    const std::vector<double> c = mixture.Covariance(k);
    const MatrixXd full = Eigen::Map<const MatrixXd>(c.data(), d, d);
    inverse.push_back(full.inverse());
    peak.push_back(std::pow(2 * std::numbers::pi, -0.5 * d) / std::sqrt(full.determinant()));
  }
  double sum = 0;
  for (std::size_t r = 0; r < rows.size() / d; ++r) {
    double density = 0;
    for (int k = 0; k < spec.components; ++k) {
      const VectorXd u = Eigen::Map<const VectorXd>(rows.data() + r * d, d) -
                         Eigen::Map<const VectorXd>(spec.means.data() + k * d, d);
      density += spec.weights[k] * peak[k] * std::exp(-0.5 * u.dot(inverse[k] * u));
    }
    sum += std::log(density);
  }
  return sum;
}

TEST(FitMixture, OfOneComponentIsTheClosedForm) {
  constexpr int kN = 400, kD = 4;
  std::vector<double> rows = Clouds(kN, kD, 1, 0, 3);
  for (int r = 0; r < kN; ++r) rows[r * kD + 1] += 0.7 * rows[r * kD] + 5;
  const Eigen::Map<const Eigen::Matrix<double, kN, kD, Eigen::RowMajor>> x(rows.data());
  const VectorXd mean = x.colwise().mean();
  const MatrixXd offsets = x.rowwise() - mean.transpose();
  const MatrixXd s = offsets.transpose() * offsets / kN;
  const double log2pi = std::log(2 * std::numbers::pi);

  const auto full = FitMixture(rows, kD, Options(CovarianceKind::kFull, 1));
  ASSERT_TRUE(full.ok()) << full.status();
  for (int i = 0; i < kD; ++i) EXPECT_NEAR(full->spec.means[i], mean[i], 1e-12);
  for (int e = 0; e < kD * kD; ++e) EXPECT_NEAR(full->spec.covariances[e], s.data()[e], 1e-12);
  EXPECT_NEAR(full->log_likelihood, -0.5 * kN * (kD * log2pi + std::log(s.determinant()) + kD),
              1e-8);
  EXPECT_EQ(full->parameters, 4 + 10);
  EXPECT_NEAR(full->bic, 14 * std::log(kN) - 2 * full->log_likelihood, 1e-9);

  const auto diagonal = FitMixture(rows, kD, Options(CovarianceKind::kDiagonal, 1));
  ASSERT_TRUE(diagonal.ok());
  double logs = 0;
  for (int i = 0; i < kD; ++i) {
    EXPECT_NEAR(diagonal->spec.variances[i], s(i, i), 1e-12);
    logs += std::log(s(i, i));
  }
  EXPECT_NEAR(diagonal->log_likelihood, -0.5 * kN * (kD * log2pi + logs + kD), 1e-8);
  EXPECT_EQ(diagonal->parameters, 8);

  // Tipping and Bishop: the leading eigenvalues stay, the others become their mean.
  const auto low = FitMixture(rows, kD, Options(CovarianceKind::kLowRank, 1, 2));
  ASSERT_TRUE(low.ok()) << low.status();
  const VectorXd values = Eigen::SelfAdjointEigenSolver<MatrixXd>(s).eigenvalues();
  const double noise = (values[0] + values[1]) / 2;
  EXPECT_NEAR(low->spec.variances[0], noise, 1e-12);
  EXPECT_NEAR(low->log_likelihood,
              -0.5 * kN * (kD * log2pi + std::log(values[3] * values[2] * noise * noise) + kD),
              1e-8);
  EXPECT_EQ(low->parameters, 4 + 4 * 2 - 1 + 1);
}

TEST(FitMixture, LikelihoodIsThatOfTheMixtureItReturnsAndOnlyRises) {
  const std::vector<double> rows = Clouds(500, 3, 3, 4, 8);
  for (const CovarianceKind kind :
       {CovarianceKind::kDiagonal, CovarianceKind::kLowRank, CovarianceKind::kFull}) {
    double before = -INFINITY;
    for (const int iterations : {1, 2, 3, 5, 8, 300}) {
      MixtureFitOptions options = Options(kind, 3, kind == CovarianceKind::kLowRank ? 1 : 0);
      options.most_iterations = iterations;
      options.restarts = 1;
      const auto fit = FitMixture(rows, 3, options);
      ASSERT_TRUE(fit.ok()) << fit.status();
      EXPECT_NEAR(fit->log_likelihood, LogLikelihoodPlainly(fit->spec, rows), 1e-7);
      EXPECT_GE(fit->log_likelihood, before - 1e-9);
      before = fit->log_likelihood;
      EXPECT_TRUE(GaussianMixture::Create(fit->spec).ok());
      const auto densities = DensitiesOf(fit->spec, rows);
      ASSERT_TRUE(densities.ok()) << densities.status();
      double sum = 0, shares = 0;
      for (const double one : densities->log_densities) sum += one;
      for (const double one : densities->responsibilities) shares += one;
      EXPECT_NEAR(shares, 500, 1e-9);
      EXPECT_NEAR(sum, fit->log_likelihood, 1e-7);
    }
  }
}

TEST(FitMixture, FindsTheMixtureAndBicItsNumberOfComponents) {
  int right[3] = {};
  for (int set = 0; set < 5; ++set) {
    const int truth = 1 + set;
    const std::vector<double> rows = Clouds(1000, 5, truth, 5, 100 + set);
    int which = 0;
    for (const CovarianceKind kind :
         {CovarianceKind::kDiagonal, CovarianceKind::kLowRank, CovarianceKind::kFull}) {
      double best = INFINITY;
      int chosen = 0;
      for (int k = 1; k <= std::min(6, truth + 2); ++k) {
        const auto fit =
            FitMixture(rows, 5, Options(kind, k, kind == CovarianceKind::kLowRank ? 1 : 0));
        ASSERT_TRUE(fit.ok()) << fit.status();
        if (fit->bic < best) best = fit->bic, chosen = k;
        if (k != truth) continue;
        for (const double w : fit->spec.weights) EXPECT_NEAR(w, 1.0 / truth, 0.07);
        // Every true centre has a fitted one beside it.
        for (int c = 0; c < truth; ++c) {
          double nearest = INFINITY;
          for (int m = 0; m < truth; ++m) {
            double square = 0;
            for (int i = 0; i < 5; ++i) {
              const double off = fit->spec.means[m * 5 + i] - (i == c ? 5 : 0);
              square += off * off;
            }
            nearest = std::min(nearest, std::sqrt(square));
          }
          EXPECT_LT(nearest, 0.5);
        }
      }
      right[which++] += chosen == truth;
    }
  }
  for (const int count : right) EXPECT_EQ(count, 5);
}

TEST(FitMixture, DoesNotDependOnThreadsButOnTheSeed) {
  const std::vector<double> rows = Clouds(900, 4, 4, 2, 17);
  MixtureFitOptions options = Options(CovarianceKind::kFull, 4);
  options.threads = 1;
  const auto one = FitMixture(rows, 4, options);
  options.threads = 3;
  const auto three = FitMixture(rows, 4, options);
  ASSERT_TRUE(one.ok() && three.ok());
  EXPECT_TRUE(one->spec == three->spec);
  options.seed = 2;
  options.restarts = 1;
  options.most_iterations = 1;
  EXPECT_FALSE(FitMixture(rows, 4, options)->spec == one->spec);
}

TEST(FitMixture, SurvivesRepeatedSamplesAndDirectionsWithoutVariance) {
  std::vector<double> rows;
  for (int r = 0; r < 60; ++r) rows.insert(rows.end(), {r % 3 * 10.0, 7.0, r % 3 * 10.0});
  for (const CovarianceKind kind :
       {CovarianceKind::kDiagonal, CovarianceKind::kLowRank, CovarianceKind::kFull}) {
    for (const int k : {1, 3, 8, 60}) {
      const auto fit =
          FitMixture(rows, 3, Options(kind, k, kind == CovarianceKind::kLowRank ? 1 : 0));
      ASSERT_TRUE(fit.ok()) << fit.status();
      EXPECT_TRUE(std::isfinite(fit->log_likelihood));
      EXPECT_LE(fit->spec.components, k);
      const auto mixture = GaussianMixture::Create(fit->spec);
      EXPECT_TRUE(mixture.ok()) << mixture.status();
    }
  }
  // One sample of its own cannot be closed in on.
  rows.insert(rows.end(), {1e6, 1e6, 1e6});
  EXPECT_TRUE(FitMixture(rows, 3, Options(CovarianceKind::kFull, 2)).ok());
}

TEST(FitMixture, NamesWhatIsWrong) {
  const std::vector<double> rows = {1, 2, 3, 4, 5, 6};
  const auto says = [&](const std::vector<double>& x, int d, const MixtureFitOptions& options) {
    return std::string(FitMixture(x, d, options).status().message());
  };
  using enum CovarianceKind;
  EXPECT_THAT(says(rows, 4, Options(kFull, 1)), HasSubstr("no whole samples"));
  EXPECT_THAT(says(rows, 2, Options(kFull, 4)), HasSubstr("there are 3 samples"));
  EXPECT_THAT(says({1, 2}, 2, Options(kFull, 1)), HasSubstr("at least 2"));
  EXPECT_THAT(says(rows, 2, Options(kFull, 0)), HasSubstr("components is 0"));
  EXPECT_THAT(says(rows, 2, Options(kLowRank, 1, 2)), HasSubstr("rank is 2, expected 1..1"));
  EXPECT_THAT(says({1, 1, 1, 1}, 2, Options(kFull, 1)), HasSubstr("all samples are alike"));
  EXPECT_THAT(says({1, 2, std::nan(""), 4}, 2, Options(kFull, 1)), HasSubstr("sample 1"));
  EXPECT_THAT(says({1, 2e200, 3, 4}, 2, Options(kFull, 1)),
              HasSubstr("beyond what float64 can hold"));
  MixtureFitOptions options = Options(kFull, 1);
  options.floor = 0;
  EXPECT_THAT(says(rows, 2, options), HasSubstr("floor"));
}

}  // namespace
}  // namespace mergeplan
