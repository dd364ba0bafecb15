#include "planner/mixture/mixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "planner/mixture/moments.h"
#include "tests/planner/mixture/random_mixture.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kKinds;
using testing::OracleMixture;
using testing::RandomMixtureSpec;

// What Create says about a mixture that was good before `change`.
std::string Refused(CovarianceKind kind, const std::function<void(MixtureSpec&)>& change) {
  std::mt19937_64 rng(1);
  MixtureSpec spec = RandomMixtureSpec(rng, kind, 2, 3);
  EXPECT_TRUE(GaussianMixture::Create(spec).ok());
  change(spec);
  const absl::Status status = GaussianMixture::Create(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(GaussianMixture, SaysWhatIsWrong) {
  using S = MixtureSpec;
  const CovarianceKind diagonal = CovarianceKind::kDiagonal, full = CovarianceKind::kFull,
                       low = CovarianceKind::kLowRank;
  const double nan = std::nan("");
  EXPECT_THAT(Refused(diagonal, [](S& s) { s.components = 0; }), HasSubstr("K is 0"));
  EXPECT_THAT(Refused(diagonal, [](S& s) { s.dimensions = 20001; }), HasSubstr("d is 20001"));
  EXPECT_THAT(Refused(full, [](S& s) { s.dimensions = 20000; }),
              HasSubstr("800000000 numbers; expected at most 268435456"));
  EXPECT_THAT(Refused(low, [](S& s) { s.rank = 4; }), HasSubstr("rank is 4; expected 1..d"));
  EXPECT_THAT(Refused(full, [](S& s) { s.rank = 1; }), HasSubstr("rank is 1"));
  EXPECT_THAT(Refused(diagonal, [](S& s) { s.name = "\xff"; }), HasSubstr("name is not UTF-8"));
  EXPECT_THAT(Refused(diagonal, [](S& s) { s.weights[1] = 0; }),
              AllOf(HasSubstr("array weights is 0 at [1]"), HasSubstr("above 0")));
  EXPECT_THAT(Refused(diagonal, [](S& s) { s.weights[1] += 2e-6; }),
              AllOf(HasSubstr("array weights sums to 1.000002"), HasSubstr("1e-6")));
  EXPECT_THAT(Refused(diagonal, [&](S& s) { s.means[4] = nan; }),
              HasSubstr("array means is nan at [1, 1]"));
  EXPECT_THAT(Refused(diagonal, [](S& s) { s.means.pop_back(); }),
              AllOf(HasSubstr("array means holds 5 numbers"), HasSubstr("[2, 3]")));
  EXPECT_THAT(Refused(diagonal, [](S& s) { s.variances[5] = -1; }),
              HasSubstr("array variances is -1 at [1, 2]"));
  EXPECT_THAT(Refused(low, [](S& s) { s.factors[0] = INFINITY; }),
              HasSubstr("array factors is inf at [0, 0, 0]"));
  EXPECT_THAT(Refused(diagonal, [](S& s) { s.factors = {1}; }),
              HasSubstr("array factors is there, but covariances are diagonal"));
  EXPECT_THAT(Refused(full, [](S& s) { s.variances = {1}; }),
              HasSubstr("array variances is there"));
  EXPECT_THAT(Refused(low, [](S& s) { s.covariances = {1}; }),
              HasSubstr("array covariances is there"));
  EXPECT_THAT(Refused(full, [&](S& s) { s.covariances[17] = nan; }),
              HasSubstr("array covariances is nan at [1, 2, 2]"));
  EXPECT_THAT(Refused(full, [](S& s) { s.covariances[9 + 2] += 0.5; }),
              AllOf(HasSubstr("[1, 0, 2]"), HasSubstr("[1, 2, 0]"), HasSubstr("symmetric")));
  EXPECT_THAT(Refused(full, [](S& s) { s.covariances[9] = -1; }),
              AllOf(HasSubstr("covariances at [1] has the eigenvalue"), HasSubstr("below 0")));
}

TEST(GaussianMixture, RepairsRoundingAndSaysSo) {
  std::mt19937_64 rng(2);
  MixtureSpec spec = RandomMixtureSpec(rng, CovarianceKind::kFull, 3, 3);
  const auto clean = GaussianMixture::Create(spec);
  ASSERT_TRUE(clean.ok());
  EXPECT_THAT(clean->notes(), IsEmpty());
  EXPECT_EQ(clean->spec(), spec);

  for (double& weight : spec.weights) weight = static_cast<float>(weight);
  spec.weights[0] += 3e-7;
  spec.covariances[1] *= 1 + 1e-8;
  const auto repaired = GaussianMixture::Create(spec);
  ASSERT_TRUE(repaired.ok()) << repaired.status();
  EXPECT_THAT(repaired->notes(),
              ElementsAre(HasSubstr("divided by their sum"), HasSubstr("the mean of both halves")));
  double sum = 0;
  for (const double weight : repaired->weights()) sum += weight;
  EXPECT_NEAR(sum, 1, 1e-15);
  EXPECT_EQ(repaired->spec().covariances[1], repaired->spec().covariances[3]);
  // A second time there is nothing left to repair.
  const auto again = GaussianMixture::Create(repaired->spec());
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(again->notes(), IsEmpty());
  EXPECT_TRUE(*again == *repaired);
}

// What numpy leaves of a covariance of rank 1 in single precision.
TEST(GaussianMixture, RoundingBelowZeroCountsAsZero) {
  MixtureSpec spec;
  spec.kind = CovarianceKind::kFull;
  spec.components = 1;
  spec.dimensions = 2;
  spec.weights = {1};
  spec.means = {0, 0};
  spec.covariances = {static_cast<float>(0.1 * 0.1), static_cast<float>(0.1 * 0.3),
                      static_cast<float>(0.1 * 0.3), static_cast<float>(0.3 * 0.3)};
  const auto mixture = GaussianMixture::Create(spec);
  ASSERT_TRUE(mixture.ok()) << mixture.status();
  EXPECT_GE(mixture->derived().values[1], 0);
  EXPECT_NEAR(mixture->derived().values[1], 0, 1e-8);
  EXPECT_NEAR(mixture->derived().values[0], 0.1, 1e-8);
}

TEST(GaussianMixture, CovariancesAndScale) {
  std::mt19937_64 rng(3);
  for (const CovarianceKind kind : kKinds) {
    const MixtureSpec spec = RandomMixtureSpec(rng, kind, 2, 4);
    const auto mixture = GaussianMixture::Create(spec);
    ASSERT_TRUE(mixture.ok());
    const auto scaled = mixture->Scaled(0.5);
    ASSERT_TRUE(scaled.ok());
    const oracle::Mixture truth = OracleMixture(spec);
    for (int k = 0; k < 2; ++k) {
      const std::vector<double> covariance = mixture->Covariance(k),
                                quarter = scaled->Covariance(k);
      for (int i = 0; i < 16; ++i) {
        EXPECT_NEAR(covariance[i], oracle::ToDouble(truth.covariances[k * 16 + i]), 1e-14);
        EXPECT_EQ(quarter[i], covariance[i] / 4);
      }
      EXPECT_EQ(scaled->mean(k)[1], mixture->mean(k)[1] / 2);
    }
    EXPECT_THAT(mixture->Scaled(0).status().message(), HasSubstr("scaled by 0"));
    EXPECT_FALSE(mixture->Scaled(1e300).ok());
  }
}

// The law of total covariance, entry by entry.
TEST(MixtureMoments, OfTheWhole) {
  std::mt19937_64 rng(4);
  for (const CovarianceKind kind : kKinds) {
    const int K = 5, d = 4;
    const MixtureSpec spec = RandomMixtureSpec(rng, kind, K, d);
    const auto mixture = GaussianMixture::Create(spec);
    ASSERT_TRUE(mixture.ok());
    const MixtureMoments moments = Moments(*mixture);
    const oracle::Mixture truth = OracleMixture(spec);
    const auto spectrum = MixtureSpectrum(*mixture, "random mixture");
    ASSERT_TRUE(spectrum.ok()) << spectrum.status();
    EXPECT_EQ(spectrum->mean, moments.mean);
    EXPECT_EQ(spectrum->recommended_basis, "pca");
    EXPECT_EQ(spectrum->pca.variances_low, spectrum->pca.variances);
    for (int i = 0; i < d; ++i) {
      for (int j = 0; j < d; ++j) {
        oracle::Wide second = 0, mi = 0, mj = 0;
        for (int k = 0; k < K; ++k) {
          const oracle::Wide a = truth.means[k * d + i], b = truth.means[k * d + j];
          second += truth.weights[k] * (truth.covariances[(k * d + i) * d + j] + a * b);
          mi += truth.weights[k] * a;
          mj += truth.weights[k] * b;
        }
        EXPECT_NEAR(moments.covariance[i * d + j], oracle::ToDouble(second - mi * mj), 1e-12);
        EXPECT_NEAR(moments.mean[i], oracle::ToDouble(mi), 1e-13);
        // V^T diag(variances) V is the covariance again.
        double back = 0;
        for (int l = 0; l < d; ++l) {
          back += spectrum->vectors[l * d + i] * spectrum->pca.variances[l] *
                  spectrum->vectors[l * d + j];
        }
        EXPECT_NEAR(back, moments.covariance[i * d + j], 1e-12);
      }
    }
  }
}

// The circle's covariance is (spread^2 + radius^2 / 2) I, so no basis is better than another.
TEST(MixtureMoments, OfThePapersCircle) {
  const auto circle = CircleMixture();
  ASSERT_TRUE(circle.ok());
  EXPECT_THAT(circle->notes(), IsEmpty());
  const auto spectrum = MixtureSpectrum(*circle, "circle");
  ASSERT_TRUE(spectrum.ok());
  EXPECT_EQ(spectrum->recommended_basis, "diagonal");
  EXPECT_NEAR(spectrum->diagonal.variances[0], 0.09 + 12.5, 1e-13);
  EXPECT_NEAR(spectrum->diagonal.variances[1], 0.09 + 12.5, 1e-13);
  EXPECT_EQ(spectrum->diagonal.regime, Regime::kHigh);
  EXPECT_NEAR(spectrum->mean[0], 0, 1e-14);
  EXPECT_FALSE(CircleMixture(0).ok());
}

TEST(MixtureMoments, SayWhereTheyOverflow) {
  MixtureSpec spec = CircleMixture(2)->spec();
  spec.means = {1e200, 0, -1e200, 0};
  const auto mixture = GaussianMixture::Create(spec);
  ASSERT_TRUE(mixture.ok());
  EXPECT_THAT(MixtureSpectrum(*mixture, "far").status().message(), HasSubstr("too large"));
}

}  // namespace
}  // namespace mergeplan
