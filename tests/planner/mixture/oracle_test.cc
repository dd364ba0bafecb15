// The step, its weights, its density and its derivative against quadruple precision.
//
// What float64 can say depends on the problem: at small sigma the weights turn over within 1e-6 of
// a boundary, and rounding the state by one unit moves them. So every comparison allows for what
// rounding of the state, the means and the covariances does to the exact answer, times a constant.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/mixture/step.h"
#include "planner/schedule/schedule.h"
#include "tests/planner/mixture/random_mixture.h"

namespace mergeplan {
namespace {

using oracle::ToDouble;
using testing::kKinds;
using testing::Normal;
using testing::OracleMixture;
using testing::RandomInt;
using testing::RandomMixtureOptions;
using testing::RandomMixtureSpec;
using testing::Uniform;

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

double Norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

// How far float64 may be off.
struct Allowed {
  std::vector<double> weight;  // K
  double out = 0, jacobian = 0, log_density = 0;
};

Allowed Judge(const MixtureSpec& spec, const oracle::Mixture& mixture,
              const oracle::MixtureStep& exact, NoiseLevel from, NoiseLevel to,
              const std::vector<double>& z) {
  const int K = mixture.K, d = mixture.d;
  const double unit = 8 * kEpsilon * (d + 4);
  // Entries of a covariance that is turned to its axes are known up to rounding of the largest.
  const bool turned = spec.kind != CovarianceKind::kDiagonal;
  Allowed allowed;
  std::vector<double> r(K), growth(K), alone_error(K), pull(K), gap(K), map(K), map_error(K),
      pull_error(K);
  for (int k = 0; k < K; ++k) {
    double size = 0, apart = 0, alone = 0;
    std::vector<double> mean(d), w(d);
    for (int j = 0; j < d; ++j) {
      mean[j] = ToDouble(mixture.means[k * d + j]);
      w[j] = ToDouble(exact.pull[k * d + j]);
      const double away = ToDouble(exact.alone[k * d + j] - exact.out[j]);
      apart += away * away;
      alone += std::pow(ToDouble(exact.alone[k * d + j]), 2);
      for (int i = 0; i < d; ++i) {
        size += std::pow(ToDouble(mixture.covariances[(k * d + j) * d + i]), 2);
      }
    }
    // Low-rank covariances are turned after scaling by the roots of E; what rounding loses there is
    // relative to the largest of them.
    double least = INFINITY, most = 0;
    for (int j = 0; spec.kind == CovarianceKind::kLowRank && j < d; ++j) {
      const double e =
          from.alpha * from.alpha * spec.variances[k * d + j] + from.sigma * from.sigma;
      least = std::min(least, e);
      most = std::max(most, e);
    }
    const double uneven = most > 0 ? std::sqrt(most / least) : 1;
    const double covariance = turned ? uneven * from.alpha * from.alpha * std::sqrt(size) : 0;
    const double where = Norm(z) + from.alpha * Norm(mean);
    pull[k] = Norm(w);
    gap[k] = std::sqrt(apart);
    r[k] = ToDouble(exact.r[k]);
    const double trace = ToDouble(exact.trace[k]);
    const double error = unit * (ToDouble(exact.distance[k]) + pull[k] * where +
                                 covariance * (pull[k] * pull[k] + trace) + 100);
    growth[k] = std::expm1(error);
    // |A| <= max of the two ratios, whichever is not 0 / 0.
    map[k] = std::min(
        std::abs(to.alpha) / from.alpha + std::abs(to.sigma) / from.sigma,
        (from.alpha * std::abs(to.alpha) * std::sqrt(size) + from.sigma * std::abs(to.sigma)) *
            trace);
    const double changed =
        covariance > 0
            ? (from.alpha * std::abs(to.alpha) / (from.alpha * from.alpha) + map[k]) * covariance
            : 0;
    map_error[k] = unit * (map[k] + changed * trace);
    alone_error[k] = unit * (map[k] * where + std::abs(to.alpha) * Norm(mean) + std::sqrt(alone) +
                             changed * pull[k]);
    pull_error[k] = unit * trace * (where + covariance * pull[k]);
  }
  double mean_pull = 0;
  for (int k = 0; k < K; ++k) {
    allowed.weight.push_back(1e-300 + r[k] * growth[k]);
    allowed.out += r[k] * (alone_error[k] + gap[k] * growth[k]);
    mean_pull += r[k] * pull[k];
  }
  // Errors of the others move a weight through the sum.
  double moved = 0;
  for (int k = 0; k < K; ++k) moved += r[k] * growth[k];
  for (int k = 0; k < K; ++k) allowed.weight[k] += r[k] * moved;
  for (int k = 0; k < K; ++k) {
    allowed.jacobian += r[k] * (map_error[k] + map[k] * (growth[k] + moved) +
                                gap[k] * (pull[k] * (growth[k] + moved) + pull_error[k]) +
                                (alone_error[k] + allowed.out) * (pull[k] + mean_pull));
  }
  allowed.log_density = moved + unit * (std::abs(ToDouble(exact.log_density)) + 1);
  return allowed;
}

// Compares at one state; true where float64 could say something.
bool Compare(const MixtureSpec& spec, const oracle::Mixture& truth, NoiseLevel from, NoiseLevel to,
             const std::vector<double>& z) {
  const auto mixture = GaussianMixture::Create(spec);
  EXPECT_TRUE(mixture.ok()) << mixture.status();
  const auto step = MixtureStep::Create(*mixture, from, to);
  EXPECT_TRUE(step.ok()) << step.status();
  if (!step.ok()) return false;
  const std::size_t d = z.size(), K = spec.components;
  std::vector<double> scratch(step->scratch_size());
  const absl::Span<double> room = absl::MakeSpan(scratch);
  std::vector<double> out(d), r(K), again(d);
  double log_density = 0;
  step->Apply(z.data(), 1, out.data(), room);
  step->Responsibilities(z.data(), 1, r.data(), room);
  step->LogDensity(z.data(), 1, &log_density, room);
  std::vector<double> jacobian(d * d), column(d);
  for (std::size_t j = 0; j < d; ++j) {
    std::vector<double> v(d);
    v[j] = 1;
    step->Derivative(z.data(), v.data(), 1, again.data(), column.data(), room);
    EXPECT_EQ(again, out);
    for (std::size_t i = 0; i < d; ++i) jacobian[i * d + j] = column[i];
  }
  double sum = 0;
  for (const double weight : r) sum += weight;
  EXPECT_NEAR(sum, 1, 1e-14);
  for (const double value : out) EXPECT_TRUE(std::isfinite(value));

  const oracle::MixtureStep exact =
      oracle::StepMixture(truth, from.alpha, from.sigma, to.alpha, to.sigma, z);
  const Allowed allowed = Judge(spec, truth, exact, from, to, z);
  const std::string where =
      absl::StrCat(std::string(ToString(spec.kind)), " K ", K, " d ", d, " alpha ", from.alpha,
                   " sigma ", from.sigma, " to ", to.alpha, " ", to.sigma);
  if (!(allowed.out < 1e-3 * (1 + Norm(out)))) return false;
  for (std::size_t i = 0; i < d; ++i) {
    EXPECT_NEAR(out[i], ToDouble(exact.out[i]), allowed.out) << where;
  }
  for (std::size_t k = 0; k < K; ++k) {
    EXPECT_NEAR(r[k], ToDouble(exact.r[k]), allowed.weight[k]) << where;
  }
  EXPECT_NEAR(log_density, ToDouble(exact.log_density), allowed.log_density) << where;
  for (std::size_t i = 0; i < d * d; ++i) {
    EXPECT_NEAR(jacobian[i], ToDouble(exact.jacobian[i]), allowed.jacobian) << where;
  }
  return true;
}

// A state of component k at this level, or between two components, or far away.
std::vector<double> RandomState(std::mt19937_64& rng, const MixtureSpec& spec, NoiseLevel from,
                                int sort) {
  const int d = spec.dimensions, k = RandomInt(rng, 0, spec.components - 1),
            l = RandomInt(rng, 0, spec.components - 1);
  std::vector<double> z(d);
  for (int j = 0; j < d; ++j) {
    const double mean = spec.means[k * d + j], other = spec.means[l * d + j];
    z[j] = from.alpha * (sort == 1 ? 0.5 * (mean + other) : mean);
    z[j] += (from.sigma + (sort == 1 ? 0.0 : 0.5 * from.alpha)) * Normal(rng);
    if (sort == 2) z[j] *= 1e3;
  }
  return z;
}

TEST(MixtureOracle, AllKindsAndSizesOfNoise) {
  std::mt19937_64 rng(1);
  int said = 0, all = 0;
  for (const CovarianceKind kind : kKinds) {
    for (int trial = 0; trial < 150; ++trial) {
      RandomMixtureOptions options;
      options.singular = trial % 3 == 1;
      options.duplicate = trial % 4 == 2;
      options.flat = trial % 5 == 3;
      const MixtureSpec spec = RandomMixtureSpec(
          rng, kind, RandomInt(rng, 1, 8), trial % 10 == 0 ? 16 : RandomInt(rng, 1, 9), options);
      const NoiseLevel from = {trial % 7 == 0 ? 0.0 : Uniform(rng, 0.01, 1.5),
                               std::pow(10, Uniform(rng, -6, 2))};
      const NoiseLevel to = {Uniform(rng, -0.2, 1.5),
                             trial % 2 == 0 ? 0.0 : from.sigma * Uniform(rng, -0.2, 1)};
      said += Compare(spec, OracleMixture(spec), from, to, RandomState(rng, spec, from, trial % 3));
      ++all;
    }
  }
  EXPECT_GT(said, all * 3 / 4);
}

TEST(MixtureOracle, LevelsOfAllNamedSchedules) {
  std::mt19937_64 rng(2);
  int said = 0, all = 0;
  for (const std::string& line : ScheduleNames()) {
    const std::string name = line.substr(0, line.find_first_of(" :"));
    const auto schedule = LoadSchedule(name, 50);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    for (const int t : {1, 2, 25, 49, 50}) {
      if (t > schedule->steps()) continue;
      for (const CovarianceKind kind : kKinds) {
        const MixtureSpec spec =
            RandomMixtureSpec(rng, kind, RandomInt(rng, 1, 8), RandomInt(rng, 1, 6));
        const NoiseLevel from = {schedule->alpha[t], schedule->sigma[t]};
        said += Compare(spec, OracleMixture(spec), from,
                        {schedule->alpha[t - 1], schedule->sigma[t - 1]},
                        RandomState(rng, spec, from, t % 2));
        ++all;
      }
    }
  }
  EXPECT_GT(all, 50);
  EXPECT_GT(said, all * 9 / 10);
}

// So far away that float64 cannot tell equal covariances apart: still finite, and within what the
// components say.
TEST(MixtureOracle, FarAwayStaysBetweenTheComponents) {
  std::mt19937_64 rng(3);
  for (const CovarianceKind kind : kKinds) {
    for (int trial = 0; trial < 60; ++trial) {
      const int K = RandomInt(rng, 1, 8), d = RandomInt(rng, 1, 8);
      const auto mixture = GaussianMixture::Create(RandomMixtureSpec(rng, kind, K, d));
      ASSERT_TRUE(mixture.ok());
      const double size = std::pow(10, Uniform(rng, 3, 100));
      const auto step =
          MixtureStep::Create(*mixture, {0.7, std::pow(10, Uniform(rng, -6, 2))}, {0.9, 0.1});
      ASSERT_TRUE(step.ok());
      std::vector<double> z(d), out(d), scratch(step->scratch_size());
      for (double& value : z) value = size * Normal(rng);
      step->Apply(z.data(), 1, out.data(), absl::MakeSpan(scratch));
      for (int i = 0; i < d; ++i) {
        double low = std::numeric_limits<double>::infinity(), high = -low;
        for (int k = 0; k < K; ++k) {
          const std::vector<double> A = step->ExpertMatrix(k), b = step->ExpertOffset(k);
          double at = b[i];
          for (int j = 0; j < d; ++j) at += A[i * d + j] * z[j];
          low = std::min(low, at);
          high = std::max(high, at);
        }
        const double slack = 1e-12 * Norm(z);
        EXPECT_GE(out[i], low - slack);
        EXPECT_LE(out[i], high + slack);
      }
    }
  }
}

// Where sigma = 0 means something: the denoiser gives z / alpha back.
TEST(MixtureOracle, NoNoiseIsTheLimit) {
  std::mt19937_64 rng(4);
  for (const CovarianceKind kind : kKinds) {
    const auto mixture = GaussianMixture::Create(RandomMixtureSpec(rng, kind, 4, 5));
    ASSERT_TRUE(mixture.ok());
    const std::vector<double> z = {1, -2, 0.5, 3, 0.25};
    const auto x = Denoise(*mixture, z, 0.8, 0);
    ASSERT_TRUE(x.ok()) << x.status();
    const auto near = Denoise(*mixture, z, 0.8, 1e-6);
    ASSERT_TRUE(near.ok());
    for (int j = 0; j < 5; ++j) {
      EXPECT_NEAR((*x)[j], z[j] / 0.8, 1e-12);
      EXPECT_NEAR((*near)[j], z[j] / 0.8, 1e-8);
    }
  }
}

}  // namespace
}  // namespace mergeplan
