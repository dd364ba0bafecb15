// Leading principal directions against all of them.
#include "planner/spectrum/leading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <random>

#include "tests/planner/spectrum/estimates.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

EstimateOptions Leading(EstimateOptions options, int count) {
  options.want_leading = true;
  options.leading = count;
  return options;
}

double Dot(const double* a, const double* b, int d) {
  double sum = 0;
  for (int i = 0; i < d; ++i) sum += a[i] * b[i];
  return sum;
}

// |C v - variance v| for direction i.
double ErrorOf(const Spectrum& s, std::size_t i) {
  const std::size_t d = s.mean.size();
  const double* v = s.leading_vectors.data() + i * d;
  double square = 0;
  for (std::size_t r = 0; r < d; ++r) {
    const double image = Dot(s.covariance.data() + r * d, v, static_cast<int>(d));
    square += std::pow(image - s.leading.variances[i] * v[r], 2);
  }
  return std::sqrt(square);
}

TEST(Leading, AreTheFirstOfAll) {
  constexpr int kD = 150, kCount = 12;
  const std::vector<double> values = Correlated(500, kD, 2, 1.5, 31);
  const auto all = Estimate(values, {kD}, WithSecondPass(values, {kD}));
  const auto some = Estimate(values, {kD}, Leading(WithSecondPass(values, {kD}), kCount));
  ASSERT_TRUE(all.ok() && some.ok()) << some.status();
  EXPECT_FALSE(some->has_pca());
  ASSERT_EQ(some->leading.variances.size(), kCount);
  EXPECT_EQ(some->Bases().size(), 1u);
  double carried = 0, total = 0;
  for (const double v : all->pca.variances) total += v;
  for (int i = 0; i < kCount; ++i) {
    const double exact = all->pca.variances[i], found = some->leading.variances[i];
    carried += exact;
    EXPECT_LE(found, exact * (1 + 1e-12));
    EXPECT_NEAR(found / exact, 1, 1e-5) << i;
    EXPECT_LE(some->leading_errors[i], 1.001e-3 * found);
    EXPECT_NEAR(some->leading_errors[i], ErrorOf(*some, i), 1e-10 * exact);
    const double* v = some->leading_vectors.data() + i * kD;
    EXPECT_NEAR(Dot(v, all->vectors.data() + i * kD, kD), 1, 1e-3) << i;  // the same sign, too
    EXPECT_NEAR(Dot(v, v, kD), 1, 1e-12);
    EXPECT_NEAR(some->leading.kurtosis[i] / all->pca.kurtosis[i], 1, 0.05);
    EXPECT_NEAR(some->leading.variances_low[i] / all->pca.variances_low[i], 1, 0.01);
  }
  EXPECT_NEAR(some->LeadingShare(), carried / total, 1e-5);
  EXPECT_EQ(some->leading.interval, "fourth-moment");
}

TEST(Leading, NeedNoCovariance) {
  constexpr int kD = 150, kCount = 8;
  const std::vector<double> values = Correlated(400, kD, 1e4, 20, 32);
  EstimateOptions options = Leading(WithSecondPass(values, {kD}), kCount);
  options.scaling = *ParseScaling("0:1");
  const auto kept = Estimate(values, {kD}, options);
  options.want_covariance = options.want_pca = options.want_dct = false;
  const auto streamed = Estimate(values, {kD}, options);
  ASSERT_TRUE(kept.ok() && streamed.ok()) << streamed.status();
  EXPECT_FALSE(streamed->has_covariance());
  for (int i = 0; i < kCount; ++i) {
    EXPECT_NEAR(streamed->leading.variances[i] / kept->leading.variances[i], 1, 1e-8);
    EXPECT_NEAR(
        Dot(streamed->leading_vectors.data() + i * kD, kept->leading_vectors.data() + i * kD, kD),
        1, 1e-6);
    EXPECT_NEAR(streamed->leading.kurtosis[i] / kept->leading.kurtosis[i], 1, 1e-3);
  }
  EXPECT_NEAR(streamed->LeadingShare(), kept->LeadingShare(), 1e-8);
  options.reopen = nullptr;
  EXPECT_THAT(Estimate(values, {kD}, options).status().message(), HasSubstr("further passes"));
  // Other data on a later pass.
  const std::vector<double> fewer(values.begin(), values.begin() + 300 * kD);
  options.reopen = [&] {
    return std::make_unique<MemorySource>(fewer, std::vector<std::int64_t>{kD});
  };
  EXPECT_EQ(Estimate(values, {kD}, options).status().code(), absl::StatusCode::kDataLoss);
}

// Eigenvalues without gaps converge slowly: what is stated must hold all the same.
TEST(Leading, ErrorsHoldWhereNothingStandsOut) {
  constexpr int kD = 300, kCount = 20;
  std::mt19937_64 random(33);
  std::normal_distribution<double> normal;
  std::vector<double> values(400 * kD);
  for (double& value : values) value = normal(random);
  const auto all = Estimate(values, {kD});
  const auto some = Estimate(values, {kD}, Leading({}, kCount));
  ASSERT_TRUE(all.ok() && some.ok()) << some.status();
  for (int i = 0; i < kCount; ++i) {
    const double found = some->leading.variances[i];
    double nearest = 1e300;
    for (const double exact : all->pca.variances)
      nearest = std::min(nearest, std::abs(exact - found));
    EXPECT_LE(nearest, some->leading_errors[i] + 1e-12);
    EXPECT_LE(found, all->pca.variances[i] * (1 + 1e-12));
    EXPECT_NEAR(found / all->pca.variances[i], 1, 1e-3);
  }
}

TEST(Leading, FewSamplesAndConstantDataHaveFewerDirections) {
  const std::vector<double> values = Correlated(6, 60, 0, 1, 34);
  const auto few = Estimate(values, {60}, Leading(WithSecondPass(values, {60}), 10));
  ASSERT_TRUE(few.ok()) << few.status();
  const auto all = Estimate(values, {60});
  for (int i = 0; i < 10; ++i) {
    EXPECT_NEAR(few->leading.variances[i], all->pca.variances[i], 1e-10 * all->pca.variances[0]);
  }
  EXPECT_GT(few->leading.variances[4], 1e-3 * few->leading.variances[0]);
  EXPECT_NEAR(few->LeadingShare(), 1, 1e-10);
  const auto flat = Estimate(std::vector<double>(400, 3.0), {40}, Leading({}, 5));
  ASSERT_TRUE(flat.ok()) << flat.status();
  EXPECT_EQ(flat->leading.variances, std::vector<double>(5, 0.0));
  // More than there are.
  const auto small = Estimate({1, 2, 3, 4, 5, 9}, {2}, Leading({}, 50));
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(small->leading.variances.size(), 2u);
}

TEST(Leading, TakeThePlaceOfAllBeyondALimit) {
  const std::vector<double> values = Correlated(200, 70, 0, 1, 35);
  EstimateOptions options;
  options.pca_up_to = 64;
  options.leading = 5;
  const auto some = Estimate(values, {70}, options);
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_FALSE(some->has_pca());
  EXPECT_EQ(some->leading.variances.size(), 5u);
  EXPECT_EQ(some->leading.interval, "gaussian");
  options.leading = 0;
  EXPECT_FALSE(Estimate(values, {70}, options)->has_leading());
  options.pca_up_to = 70;
  EXPECT_TRUE(Estimate(values, {70}, options)->has_pca());
}

TEST(Leading, DependOnTheSeedOnlyWithinTheirErrorsAndNotOnThreads) {
  const std::vector<double> values = Correlated(300, 200, 0, 1, 36);
  EstimateOptions options = Leading(WithSecondPass(values, {200}), 6);
  options.threads = 1;
  const auto one = Estimate(values, {200}, options);
  options.threads = 3;
  const auto three = Estimate(values, {200}, options);
  ASSERT_TRUE(one.ok() && three.ok());
  EXPECT_EQ(*one, *three);
  options.seed = 2;
  const auto other = Estimate(values, {200}, options);
  for (int i = 0; i < 6; ++i) {
    EXPECT_NEAR(other->leading.variances[i] / one->leading.variances[i], 1, 1e-5);
  }
}

TEST(Leading, ComeBackFromTheFileAndShrinkWithTheRest) {
  const std::vector<double> values = Correlated(60, 40, 0, 1, 37);
  EstimateOptions options = Leading(WithSecondPass(values, {40}), 6);
  const auto plain = Estimate(values, {40}, options);
  options.shrinkage_rule = "oas";
  const auto shrunk = Estimate(values, {40}, options);
  ASSERT_TRUE(plain.ok() && shrunk.ok()) << shrunk.status();
  double mean = 0;
  for (const double v : plain->diagonal.variances) mean += v / 40;
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(shrunk->leading.variances[i],
                (1 - shrunk->shrinkage) * plain->leading.variances[i] + shrunk->shrinkage * mean,
                1e-12);
    EXPECT_NEAR(shrunk->leading_errors[i], ErrorOf(*shrunk, i), 1e-10);
  }
  const std::string path = testing::TempDir() + "/leading-" + std::to_string(getpid()) + ".toml";
  ASSERT_TRUE(WriteSpectrum(*shrunk, path).ok());
  const auto again = ReadSpectrum(path);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *shrunk);
  ASSERT_TRUE(WriteSpectrum(*plain, path).ok());  // over its own
  Spectrum broken = *plain;
  broken.leading_errors.pop_back();
  EXPECT_THAT(WriteSpectrum(broken, path).message(), HasSubstr("leading_errors"));
}

TEST(Leading, StopWhereTheyAreTold) {
  const std::vector<double> values = Correlated(60, 40, 0, 1, 38);
  EstimateOptions options = Leading({}, 6);
  options.stop = [] { return true; };
  EXPECT_TRUE(absl::IsCancelled(Estimate(values, {40}, options).status()));
  // All of them, too: those of 700 dimensions take long enough to be stopped.
  const std::vector<double> wide = Correlated(3, 700, 0, 1, 39);
  options.want_leading = false;
  const absl::Status stopped = Estimate(wide, {700}, options).status();
  EXPECT_TRUE(absl::IsCancelled(stopped)) << stopped;
  options.stop = [] { return false; };
  EXPECT_TRUE(Estimate(values, {40}, options).ok());
}

}  // namespace
}  // namespace mergeplan
