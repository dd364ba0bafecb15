#include "planner/mixture/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "planner/base/exponential.h"
#include "planner/mixture/trajectory.h"
#include "planner/operators/gaussian.h"
#include "tests/planner/mixture/random_mixture.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::kKinds;
using testing::Normal;
using testing::RandomInt;
using testing::RandomMixtureSpec;
using testing::Uniform;

std::vector<double> RandomRows(std::mt19937_64& rng, std::size_t count, double size = 2) {
  std::vector<double> rows(count);
  for (double& value : rows) value = size * Normal(rng);
  return rows;
}

std::vector<double> Applied(const MixtureStep& step, const std::vector<double>& z) {
  std::vector<double> out(z.size()), scratch(step.scratch_size());
  step.Apply(z.data(), z.size() / step.dimensions(), out.data(), absl::MakeSpan(scratch));
  return out;
}

TEST(ExpOfNegative, EqualsTheLibrarys) {
  double worst = 0;
  for (int i = 0; i <= 2'000'000; ++i) {
    const double x = -708.0 * i / 2'000'000;
    const double want = std::exp(x);
    worst = std::max(worst, std::abs(ExpOfNegative(x) - want) / want);
  }
  EXPECT_LT(worst, 4.5e-16);
  EXPECT_EQ(ExpOfNegative(0.0), 1);
  EXPECT_EQ(ExpOfNegative(-0.0), 1);
  EXPECT_EQ(ExpOfNegative(-1e-300), 1);
  EXPECT_EQ(ExpOfNegative(-709.0), 0);
  EXPECT_EQ(ExpOfNegative(-1e300), 0);
  EXPECT_EQ(ExpOfNegative(-std::numeric_limits<double>::infinity()), 0);
  EXPECT_TRUE(std::isnan(ExpOfNegative(std::numeric_limits<double>::quiet_NaN())));
}

TEST(ExpOfNegative, EqualsTheLibrarysInSinglePrecision) {
  double worst = 0;
  for (int i = 0; i <= 2'000'000; ++i) {
    const auto x = static_cast<float>(-87.0 * i / 2'000'000);
    const double want = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(ExpOfNegative(x) - want) / want);
  }
  EXPECT_LT(worst, 2.4e-7);
  EXPECT_EQ(ExpOfNegative(0.0F), 1);
  EXPECT_EQ(ExpOfNegative(-88.0F), 0);
  EXPECT_EQ(ExpOfNegative(-std::numeric_limits<float>::infinity()), 0);
  EXPECT_TRUE(std::isnan(ExpOfNegative(std::numeric_limits<float>::quiet_NaN())));
}

// cor:optimal_single_operator: one centred component is the Gaussian teacher.
TEST(MixtureStep, OneComponentIsTheGaussianTeacher) {
  std::mt19937_64 rng(1);
  const Schedule schedule = CosineSchedule(16);
  for (const CovarianceKind kind : kKinds) {
    for (int d : {1, 2, 7}) {
      MixtureSpec spec = RandomMixtureSpec(rng, kind, 1, d);
      if (d == 2) spec.means.assign(d, 0);
      const auto mixture = GaussianMixture::Create(spec);
      ASSERT_TRUE(mixture.ok()) << mixture.status();
      const Eigen::Map<const Eigen::VectorXd> mean(spec.means.data(), d);
      const std::vector<double> covariance = mixture->Covariance(0);
      const auto teacher = FullGaussianTeacher::Create(
          schedule, mean, Eigen::Map<const Eigen::MatrixXd>(covariance.data(), d, d));
      ASSERT_TRUE(teacher.ok()) << teacher.status();
      const auto trajectory = MixtureTrajectory::Create(*mixture, schedule);
      ASSERT_TRUE(trajectory.ok()) << trajectory.status();
      const std::vector<double> z = RandomRows(rng, d);
      for (int t = 1; t <= 16; ++t) {
        const MixtureStep& step = trajectory->Step(t);
        const std::vector<double> out = Applied(step, z), A = step.ExpertMatrix(0),
                                  b = step.ExpertOffset(0);
        const AffineMap want = teacher->Step(t);
        const Eigen::VectorXd at = want(Eigen::Map<const Eigen::VectorXd>(z.data(), d));
        for (int i = 0; i < d; ++i) {
          EXPECT_NEAR(out[i], at[i], 1e-12 * (1 + at.norm()));
          EXPECT_NEAR(b[i], want.b[i], 1e-12 * (1 + want.b.norm()));
          for (int j = 0; j < d; ++j) EXPECT_NEAR(A[i * d + j], want.A(i, j), 1e-12);
          if (kind == CovarianceKind::kDiagonal) {
            EXPECT_NEAR(A[i * d + i], JumpGain(schedule, t, t, spec.variances[i]), 1e-15);
          }
        }
      }
      std::vector<double> composite(d), scratch(trajectory->scratch_size());
      trajectory->Composite(3, 14, z.data(), 1, composite.data(), absl::MakeSpan(scratch));
      const Eigen::VectorXd want =
          teacher->Composite(3, 14)(Eigen::Map<const Eigen::VectorXd>(z.data(), d));
      for (int i = 0; i < d; ++i) EXPECT_NEAR(composite[i], want[i], 1e-12 * (1 + want.norm()));
    }
  }
}

// cor:gmm_single_step, and the denoiser and the noise it is made of.
TEST(MixtureStep, IsTheWeightedSumOfItsExperts) {
  std::mt19937_64 rng(2);
  for (const CovarianceKind kind : kKinds) {
    const int K = 5, d = 4;
    const auto mixture = GaussianMixture::Create(RandomMixtureSpec(rng, kind, K, d));
    ASSERT_TRUE(mixture.ok());
    const NoiseLevel from = {0.6, 0.8}, to = {0.8, 0.6};
    const auto step = MixtureStep::Create(*mixture, from, to);
    const auto noise = MixtureStep::Create(*mixture, from, {0, 1});
    ASSERT_TRUE(step.ok() && noise.ok());
    const std::vector<double> z = RandomRows(rng, d);
    std::vector<double> r(K), scratch(step->scratch_size()), want(d);
    step->Responsibilities(z.data(), 1, r.data(), absl::MakeSpan(scratch));
    for (int k = 0; k < K; ++k) {
      const std::vector<double> A = step->ExpertMatrix(k), b = step->ExpertOffset(k);
      for (int i = 0; i < d; ++i) {
        double at = b[i];
        for (int j = 0; j < d; ++j) at += A[i * d + j] * z[j];
        want[i] += r[k] * at;
      }
    }
    const std::vector<double> out = Applied(*step, z), eps = Applied(*noise, z);
    const std::vector<double> x = *Denoise(*mixture, z, from.alpha, from.sigma);
    for (int i = 0; i < d; ++i) {
      EXPECT_NEAR(out[i], want[i], 1e-13);
      EXPECT_NEAR(out[i], to.alpha * x[i] + to.sigma * eps[i], 1e-13);
      EXPECT_NEAR(z[i], from.alpha * x[i] + from.sigma * eps[i], 1e-13);
    }
  }
}

TEST(MixtureStep, ARowDoesNotDependOnItsCompany) {
  std::mt19937_64 rng(3);
  for (const CovarianceKind kind : kKinds) {
    // The second is too large for the deviations of all components to be kept.
    for (const auto& [K, d] : {std::pair{5, 3}, std::pair{40, 60}}) {
      const auto mixture = GaussianMixture::Create(RandomMixtureSpec(rng, kind, K, d));
      ASSERT_TRUE(mixture.ok());
      const auto step = MixtureStep::Create(*mixture, {0.9, 0.4}, {0.95, 0.3});
      ASSERT_TRUE(step.ok());
      const std::size_t rows = 37;
      const std::vector<double> z = RandomRows(rng, rows * d), v = RandomRows(rng, rows * d);
      std::vector<double> scratch(step->scratch_size()), all = Applied(*step, z), one(d);
      std::vector<double> out(rows * d), jv(rows * d), jv_one(d);
      step->Derivative(z.data(), v.data(), rows, out.data(), jv.data(), absl::MakeSpan(scratch));
      EXPECT_EQ(out, all);
      for (std::size_t row = 0; row < rows; ++row) {
        step->Derivative(z.data() + row * d, v.data() + row * d, 1, one.data(), jv_one.data(),
                         absl::MakeSpan(scratch));
        EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + row * d));
        EXPECT_TRUE(std::equal(jv_one.begin(), jv_one.end(), jv.begin() + row * d));
      }
      // In place, and in single precision.
      std::vector<double> in_place = z;
      step->Apply(in_place.data(), rows, in_place.data(), absl::MakeSpan(scratch));
      EXPECT_EQ(in_place, all);
      const std::vector<float> single(z.begin(), z.end());
      const std::vector<double> widened(single.begin(), single.end());
      const std::vector<double> wide = Applied(*step, widened);
      std::vector<float> got(single.size());
      step->Apply(single.data(), rows, got.data(), absl::MakeSpan(scratch));
      EXPECT_EQ(got, std::vector<float>(wide.begin(), wide.end()));
    }
  }
}

TEST(MixtureStep, DuplicatedComponentsShareTheirWeight) {
  std::mt19937_64 rng(4);
  for (const CovarianceKind kind : kKinds) {
    MixtureSpec twice = RandomMixtureSpec(rng, kind, 2, 3, {.duplicate = true});
    twice.weights = {0.25, 0.75};
    MixtureSpec once = twice;
    once.components = 1;
    once.weights = {1};
    for (std::vector<double>* values :
         {&once.means, &once.variances, &once.factors, &once.covariances}) {
      values->resize(values->size() / 2);
    }
    const auto step = MixtureStep::Create(*GaussianMixture::Create(twice), {0.6, 0.8}, {1, 0});
    const auto single = MixtureStep::Create(*GaussianMixture::Create(once), {0.6, 0.8}, {1, 0});
    ASSERT_TRUE(step.ok() && single.ok());
    const std::vector<double> z = RandomRows(rng, 3);
    std::vector<double> r(2), scratch(step->scratch_size());
    step->Responsibilities(z.data(), 1, r.data(), absl::MakeSpan(scratch));
    EXPECT_NEAR(r[0], 0.25, 1e-15);
    const std::vector<double> a = Applied(*step, z), b = Applied(*single, z);
    for (int j = 0; j < 3; ++j) EXPECT_NEAR(a[j], b[j], 1e-14);
  }
}

TEST(MixtureStep, WhatIsNotFiniteBecomesNaNInItsRowOnly) {
  const auto step = MixtureStep::Create(*CircleMixture(), {0.6, 0.8}, {0.8, 0.6});
  ASSERT_TRUE(step.ok());
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> z = {1, 2, std::nan(""), 2, 1, -inf, 1e200, 0, 1, 2};
  const std::vector<double> out = Applied(*step, z);
  for (const int row : {1, 2, 3}) {
    EXPECT_TRUE(std::isnan(out[2 * row])) << row;
    EXPECT_TRUE(std::isnan(out[2 * row + 1])) << row;
  }
  EXPECT_TRUE(std::isfinite(out[0]));
  EXPECT_EQ(out[0], out[8]);
  EXPECT_EQ(out[1], out[9]);
}

TEST(MixtureStep, DensityIntegratesToOne) {
  std::mt19937_64 rng(5);
  for (const CovarianceKind kind : kKinds) {
    const auto mixture = GaussianMixture::Create(RandomMixtureSpec(rng, kind, 3, 1));
    const auto step = MixtureStep::Create(*mixture, {0.8, 0.6}, {1, 0});
    ASSERT_TRUE(step.ok());
    const double h = 0.01;  // the trapezoidal rule is exact to rounding for such densities
    std::vector<double> z, log_density(8001), scratch(step->scratch_size());
    for (int i = -4000; i <= 4000; ++i) z.push_back(i * h);
    step->LogDensity(z.data(), z.size(), log_density.data(), absl::MakeSpan(scratch));
    double sum = 0;
    for (const double value : log_density) sum += h * std::exp(value);
    EXPECT_NEAR(sum, 1, 1e-12);
  }
}

TEST(MixtureStep, RefusesLevelsWithoutMeaning) {
  std::mt19937_64 rng(6);
  const auto mixture = CircleMixture();
  ASSERT_TRUE(mixture.ok());
  const auto message = [](const GaussianMixture& m, NoiseLevel from, NoiseLevel to) {
    const absl::Status status = MixtureStep::Create(m, from, to).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(message(*mixture, {0, 0}, {1, 0}), HasSubstr("alpha = 0, sigma = 0"));
  EXPECT_THAT(message(*mixture, {-1, 1}, {1, 0}), HasSubstr("alpha = -1"));
  EXPECT_THAT(message(*mixture, {1, std::nan("")}, {1, 0}), HasSubstr("sigma = nan"));
  EXPECT_THAT(message(*mixture, {1, 1}, {INFINITY, 0}), HasSubstr("step to alpha = inf"));
  EXPECT_THAT(message(*mixture, {1, 1e-200}, {1, 0}), HasSubstr("squares above"));

  // Without noise a component without variance has no density.
  MixtureSpec flat = mixture->spec();
  flat.variances[5] = 0;
  EXPECT_THAT(message(*GaussianMixture::Create(flat), {1, 0}, {1, 0}),
              AllOf(HasSubstr("component 2"), HasSubstr("dimension 1"), HasSubstr("sigma > 0")));
  MixtureSpec full = RandomMixtureSpec(rng, CovarianceKind::kFull, 2, 2);
  full.covariances = {1, 0, 0, 1, 4, 2, 2, 1};
  EXPECT_THAT(message(*GaussianMixture::Create(full), {1, 0}, {1, 0}),
              AllOf(HasSubstr("component 1"), HasSubstr("eigenvector 1")));
  MixtureSpec low = RandomMixtureSpec(rng, CovarianceKind::kLowRank, 2, 2);
  low.variances = {1, 1, 0, 1};
  EXPECT_THAT(message(*GaussianMixture::Create(low), {1, 0}, {1, 0}),
              AllOf(HasSubstr("component 1"), HasSubstr("besides its factors")));
  for (const MixtureSpec& spec : {flat, full, low}) {
    EXPECT_TRUE(MixtureStep::Create(*GaussianMixture::Create(spec), {1, 1e-6}, {1, 0}).ok());
  }
  EXPECT_THAT(Denoise(*mixture, {1, 2, 3}, 1, 1).status().message(), HasSubstr("3 numbers"));
}

TEST(MixtureStepDeathTest, SaysThatTheScratchIsTooSmall) {
  const auto step = MixtureStep::Create(*CircleMixture(), {0.6, 0.8}, {0.8, 0.6});
  ASSERT_TRUE(step.ok());
  std::vector<double> z(2), scratch(3);
  EXPECT_DEATH(step->Apply(z.data(), 1, z.data(), absl::MakeSpan(scratch)), "scratch_size");
}

// ---- Trajectories.

TEST(MixtureTrajectory, CompositesAreTheirStepsOneByOne) {
  std::mt19937_64 rng(7);
  for (const CovarianceKind kind : kKinds) {
    const int d = 3, rows = 21;
    const auto mixture = GaussianMixture::Create(RandomMixtureSpec(rng, kind, 4, d));
    const auto trajectory = MixtureTrajectory::Create(*mixture, CosineSchedule(12));
    ASSERT_TRUE(trajectory.ok()) << trajectory.status();
    std::vector<double> z = RandomRows(rng, rows * d), want = z, out(rows * d);
    std::vector<double> scratch(trajectory->scratch_size());
    for (int t = 9; t >= 4; --t) want = Applied(trajectory->Step(t), want);
    trajectory->Composite(4, 9, z.data(), rows, out.data(), absl::MakeSpan(scratch));
    EXPECT_EQ(out, want);
    const std::vector<float> single(z.begin(), z.end());
    std::vector<float> got(single.size());
    trajectory->Composite(4, 9, single.data(), rows, got.data(), absl::MakeSpan(scratch));
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4);
  }
}

// Products with the derivative of a composite against differences, and against each other.
TEST(MixtureTrajectory, DerivativesOfComposites) {
  std::mt19937_64 rng(8);
  for (const CovarianceKind kind : kKinds) {
    const int d = 3, rows = 18, first = 2, last = 10;
    const auto mixture = GaussianMixture::Create(RandomMixtureSpec(rng, kind, 4, d));
    const auto trajectory = MixtureTrajectory::Create(*mixture, CosineSchedule(12));
    ASSERT_TRUE(trajectory.ok());
    const std::vector<double> z = RandomRows(rng, rows * d), v = RandomRows(rng, rows * d, 1),
                              g = RandomRows(rng, rows * d, 1);
    std::vector<double> out(rows * d), jv(rows * d), gj(rows * d), again(rows * d), up(rows * d),
        down(rows * d), moved = z, scratch(trajectory->vjp_scratch_size(last - first + 1));
    const absl::Span<double> room = absl::MakeSpan(scratch);
    trajectory->Composite(first, last, z.data(), rows, out.data(), room);
    trajectory->CompositeJvp(first, last, z.data(), v.data(), rows, again.data(), jv.data(), room);
    EXPECT_EQ(again, out);
    trajectory->CompositeVjp(first, last, z.data(), g.data(), rows, again.data(), gj.data(), room);
    EXPECT_EQ(again, out);
    const double h = 1e-5;
    for (std::size_t i = 0; i < z.size(); ++i) moved[i] = z[i] + h * v[i];
    trajectory->Composite(first, last, moved.data(), rows, up.data(), room);
    for (std::size_t i = 0; i < z.size(); ++i) moved[i] = z[i] - h * v[i];
    trajectory->Composite(first, last, moved.data(), rows, down.data(), room);
    for (int row = 0; row < rows; ++row) {
      double left = 0, right = 0, size = 0;
      for (int j = row * d; j < (row + 1) * d; ++j) {
        const double difference = (up[j] - down[j]) / (2 * h);
        EXPECT_NEAR(jv[j], difference, 1e-4 * (1 + std::abs(difference)));
        left += g[j] * jv[j];
        right += gj[j] * v[j];
        size += std::abs(g[j] * jv[j]) + std::abs(gj[j] * v[j]);
      }
      EXPECT_NEAR(left, right, 1e-11 * (1 + size));
    }
    // Without the values, in place.
    std::vector<double> direction = v;
    trajectory->CompositeJvp(first, last, z.data(), direction.data(), rows, nullptr,
                             direction.data(), room);
    EXPECT_EQ(direction, jv);
  }
}

// EDM: x_0 is divided by sigma_data, and so is the mixture.
TEST(MixtureTrajectory, TakesTheDataToTheSchedulesCoordinates) {
  const auto edm = LoadSchedule("edm", 10);
  ASSERT_TRUE(edm.ok()) << edm.status();
  ASSERT_NE(edm->data_scale, 1);
  const auto trajectory = MixtureTrajectory::Create(*CircleMixture(), *edm);
  ASSERT_TRUE(trajectory.ok());
  EXPECT_NEAR(trajectory->mixture().mean(0)[0], 5 / edm->data_scale, 1e-13);
  EXPECT_NEAR(trajectory->mixture().spec().variances[0], 0.09 / std::pow(edm->data_scale, 2),
              1e-14);
  Schedule broken = CosineSchedule(4);
  broken.alpha[2] = broken.alpha[1];
  broken.sigma[2] = broken.sigma[1];
  EXPECT_FALSE(MixtureTrajectory::Create(*CircleMixture(), broken).ok());
}

// subsec:gaussian_mixtures_dataset. With enough steps the deterministic sampler turns noise into
// the circle: every state ends near one of the eight means.
TEST(MixtureTrajectory, ThePapersMixtureFromNoise) {
  std::mt19937_64 rng(9);
  const auto circle = CircleMixture();
  ASSERT_TRUE(circle.ok());
  EXPECT_EQ(circle->components(), 8);
  EXPECT_NEAR(std::hypot(circle->mean(3)[0], circle->mean(3)[1]), 5, 1e-14);
  const auto trajectory = MixtureTrajectory::Create(*circle, CosineSchedule(512));
  ASSERT_TRUE(trajectory.ok());
  const int rows = 400;
  std::vector<double> z = RandomRows(rng, rows * 2, 1), scratch(trajectory->scratch_size());
  trajectory->Composite(1, 512, z.data(), rows, z.data(), absl::MakeSpan(scratch));
  double total = 0;
  for (int row = 0; row < rows; ++row) {
    double nearest = 1e9;
    for (int k = 0; k < 8; ++k) {
      nearest = std::min(nearest, std::hypot(z[2 * row] - circle->mean(k)[0],
                                             z[2 * row + 1] - circle->mean(k)[1]));
    }
    total += nearest * nearest / rows;
    EXPECT_LT(nearest, 1.95);
  }
  // Data would give 2 * 0.09; the sampler contracts a little.
  EXPECT_GT(total, 0.1);
  EXPECT_LT(total, 0.25);
}

}  // namespace
}  // namespace mergeplan
