#include "planner/spectrum/estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <variant>

#include "absl/strings/match.h"
#include "tests/planner/spectrum/estimates.h"
#include "tests/planner/spectrum/memory_source.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Scaling None() { return Scaling(); }

// The plain way: two passes in long double, one entry at a time.
struct Oracle {
  std::vector<double> mean, covariance, kurtosis;
  Oracle(const std::vector<double>& values, int d) {
    const std::size_t n = values.size() / d;
    std::vector<long double> centre(d);
    for (std::size_t r = 0; r < n; ++r) {
      for (int i = 0; i < d; ++i) centre[i] += values[r * d + i];
    }
    for (int i = 0; i < d; ++i) mean.push_back(static_cast<double>(centre[i] /= n));
    for (int i = 0; i < d; ++i) {
      for (int j = 0; j < d; ++j) {
        long double sum = 0, fourth = 0;
        for (std::size_t r = 0; r < n; ++r) {
          const long double a = values[r * d + i] - centre[i], b = values[r * d + j] - centre[j];
          sum += a * b;
          fourth += a * a * b * b;
        }
        covariance.push_back(static_cast<double>(sum / (n - 1)));
        if (i == j) kurtosis.push_back(static_cast<double>(fourth * n / (sum * sum)));
      }
    }
  }
};

std::vector<const Kernels*> AllKernels() {
  std::vector<const Kernels*> all = {&BaselineKernels()};
  if (X8664V3Kernels() != nullptr) all.push_back(X8664V3Kernels());
  return all;
}

struct Case {
  int n, d;
  double mean, spread;
};

class MomentsTest : public ::testing::TestWithParam<Case> {};

TEST_P(MomentsTest, EqualThePlainTwoPassFormulas) {
  const Case c = GetParam();
  const std::vector<double> values = Correlated(c.n, c.d, c.mean, c.spread, 7);
  const Oracle oracle(values, c.d);
  for (const Kernels* kernels : AllKernels()) {
    SCOPED_TRACE(kernels->name);
    EstimateOptions options;
    options.kernels = kernels;
    options.threads = 2;
    const auto spectrum = Estimate(values, {c.d}, options);
    ASSERT_TRUE(spectrum.ok()) << spectrum.status();
    EXPECT_EQ(spectrum->samples, c.n);
    for (int i = 0; i < c.d; ++i) {
      const double deviation = std::sqrt(oracle.covariance[i * c.d + i]);
      EXPECT_NEAR(spectrum->mean[i], oracle.mean[i],
                  1e-13 * deviation + 2e-16 * std::abs(oracle.mean[i]));
      for (int j = 0; j < c.d; ++j) {
        const double other = std::sqrt(oracle.covariance[j * c.d + j]);
        ASSERT_NEAR(spectrum->covariance[i * c.d + j], oracle.covariance[i * c.d + j],
                    1e-12 * deviation * other)
            << i << " " << j;
        ASSERT_EQ(spectrum->covariance[i * c.d + j], spectrum->covariance[j * c.d + i]);
      }
      // The interval gives the kurtosis away: log(high / low) = 2 z sqrt((k - (n-3)/(n-1)) / n).
      const double n = c.n;
      const double width =
          1.959963984540054 * std::sqrt((oracle.kurtosis[i] - (n - 3) / (n - 1)) / n);
      const double variance = spectrum->diagonal.variances[i];
      EXPECT_EQ(variance, spectrum->covariance[i * c.d + i]);
      EXPECT_NEAR(spectrum->diagonal.variances_low[i], variance * std::exp(-width),
                  1e-10 * variance);
      EXPECT_NEAR(spectrum->diagonal.variances_high[i], variance * std::exp(width),
                  1e-10 * variance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, MomentsTest,
                         ::testing::Values(Case{2, 3, 0, 1}, Case{3, 1, 5, 1}, Case{500, 7, 0, 1},
                                           Case{9000, 5, -3, 2}, Case{300, 130, 1, 1},
                                           Case{50, 200, 0, 1}, Case{20000, 3, 1e6, 1e-2},
                                           Case{20000, 3, 1e4, 1e-2}, Case{20000, 2, 0, 1e-18},
                                           Case{20000, 2, 0, 1e18}),
                         [](const auto& info) {
                           return "n" + std::to_string(info.param.n) + "d" +
                                  std::to_string(info.param.d) + "i" + std::to_string(info.index);
                         });

TEST(EstimateSpectrum, SurvivesDataThatIsSortedAndDrifts) {
  // The mean of each batch is far from the first sample and from the others.
  std::vector<double> values;
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (int r = 0; r < 60000; ++r) {
    values.push_back(static_cast<float>(r * 0.01 + 1e-3 * normal(random)));
    values.push_back(static_cast<float>(-r * 0.02 + normal(random)));
  }
  const Oracle oracle(values, 2);
  const auto spectrum = Estimate(values, {2});
  ASSERT_TRUE(spectrum.ok()) << spectrum.status();
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(spectrum->covariance[i] / oracle.covariance[i], 1, 1e-12);
  }
}

TEST(EstimateSpectrum, DoesNotDependOnBatchesNorThreads) {
  const std::vector<double> values = Correlated(3000, 150, 2, 1, 11);
  EstimateOptions options = WithSecondPass(values, {150});
  options.threads = 1;
  const auto whole = Estimate(values, {150}, options);
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const int batch : {1, 7, 1000}) {
    for (const int threads : {1, 3}) {
      options.threads = threads;
      const auto pieces = Estimate(values, {150}, options, batch);
      ASSERT_TRUE(pieces.ok()) << pieces.status();
      EXPECT_TRUE(*pieces == *whole) << "batch " << batch << " threads " << threads;
    }
  }
}

// Values of a plain file that float holds are summed from floats, all others from doubles: whatever
// the type, the numbers are those of a stream of doubles.
TEST(EstimateSpectrum, IsTheSameFromFloatsOfAFileAsFromDoubles) {
  constexpr int n = 3000, d = 29;
  const std::vector<double> values = Correlated(n, d, 1e6, 3, 5);
  const std::vector<float> narrow(values.begin(), values.end());
  const auto stream = Estimate(values, {d});
  ASSERT_TRUE(stream.ok()) << stream.status();
  for (const std::string& path :
       {WriteNpy("<f4", {n, d}, narrow), WriteNpy("<f8", {n, d}, values)}) {
    const auto source = OpenSamples(path, {});
    ASSERT_TRUE(source.ok()) << source.status();
    ASSERT_NE((*source)->row_file(), nullptr);
    EstimateOptions options;
    int seen = 0;
    options.observe = [&](const Rows& rows, int count) {
      EXPECT_EQ(std::holds_alternative<absl::Span<const float>>(rows),
                (*source)->row_file()->fits_float());
      std::visit(
          [&](const auto of) {
            for (std::size_t k = 0; k < of.size(); ++k) ASSERT_EQ(of[k], values[seen * d + k]);
          },
          rows);
      seen += count;
    };
    const auto found = EstimateSpectrum(**source, options);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(seen, n);
    EXPECT_EQ(found->mean, stream->mean);
    EXPECT_EQ(found->covariance, stream->covariance);
    EXPECT_EQ(found->diagonal.kurtosis, stream->diagonal.kurtosis);
  }
}

// From the batch with such a value on the source is asked, which leaves the sample out.
TEST(EstimateSpectrum, LeavesSamplesOutThatAreNotFiniteWhereverTheyLie) {
  constexpr int n = 9000, d = 3;
  std::vector<double> values = Correlated(n, d, -2, 1, 6), kept;
  std::vector<float> narrow(values.begin(), values.end());
  const std::vector<int> bad = {0, 8063, 8064, n - 1};
  for (int r = 0; r < n; ++r) {
    if (std::find(bad.begin(), bad.end(), r) != bad.end()) {
      narrow[r * d + r % d] = std::nanf("");
    } else {
      kept.insert(kept.end(), values.begin() + r * d, values.begin() + (r + 1) * d);
    }
  }
  SamplesOptions skip;
  skip.skip_nonfinite = true;
  const auto source = OpenSamples(WriteNpy("<f4", {n, d}, narrow), skip);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto found = EstimateSpectrum(**source, {});
  ASSERT_TRUE(found.ok()) << found.status();
  const auto expected = Estimate(kept, {d});
  ASSERT_TRUE(expected.ok());
  EXPECT_EQ(found->skipped, 4);
  EXPECT_EQ(found->mean, expected->mean);
  EXPECT_EQ(found->covariance, expected->covariance);
}

TEST(EstimateSpectrum, PrincipalDirectionsTurnTheCovarianceToADiagonal) {
  constexpr int kD = 90;
  const std::vector<double> values = Correlated(2000, kD, 0, 1, 5);
  for (const Kernels* kernels : AllKernels()) {
    SCOPED_TRACE(kernels->name);
    EstimateOptions options = WithSecondPass(values, {9, 10});
    options.kernels = kernels;
    const auto spectrum = Estimate(values, {9, 10}, options);
    ASSERT_TRUE(spectrum.ok()) << spectrum.status();
    const std::vector<double>& v = spectrum->vectors;
    const std::vector<double>& lambda = spectrum->pca.variances;
    for (int i = 0; i < kD; ++i) {
      if (i > 0) {
        EXPECT_LE(lambda[i], lambda[i - 1]);
      }
      EXPECT_LE(spectrum->pca.variances_low[i], lambda[i]);
      EXPECT_GE(spectrum->pca.variances_high[i], lambda[i]);
      const auto row = v.begin() + i * kD;
      EXPECT_GT(*std::max_element(row, row + kD), -*std::min_element(row, row + kD) * (1 - 1e-6));
      for (int j = 0; j < kD; ++j) {
        double dot = 0, rebuilt = 0;
        for (int k = 0; k < kD; ++k) {
          dot += v[i * kD + k] * v[j * kD + k];
          rebuilt += v[k * kD + i] * lambda[k] * v[k * kD + j];
        }
        ASSERT_NEAR(dot, i == j ? 1 : 0, 1e-13);
        ASSERT_NEAR(rebuilt, spectrum->covariance[i * kD + j], 1e-12 * lambda[0]);
      }
    }
    EXPECT_EQ(spectrum->pca.name, "pca");
    EXPECT_EQ(spectrum->pca.interval, "fourth-moment");
    EXPECT_LT(spectrum->pca.off_diagonal_energy, 1e-24);
    EXPECT_GE(spectrum->pca.off_diagonal_energy, 0);
    // The same figure for the data's own axes, in the plain way.
    double off = 0, all = 0;
    for (int i = 0; i < kD * kD; ++i) {
      const double square = spectrum->covariance[i] * spectrum->covariance[i];
      all += square;
      if (i % (kD + 1) != 0) off += square;
    }
    EXPECT_NEAR(spectrum->diagonal.off_diagonal_energy, off / all, 1e-12);
    EXPECT_EQ(spectrum->recommended_basis, "pca");
  }
}

TEST(EstimateSpectrum, FewerSamplesThanDimensionsGiveVariancesOfZeroNotBelow) {
  const std::vector<double> values = Correlated(20, 60, 0, 1, 5);
  const auto spectrum = Estimate(values, {60}, WithSecondPass(values, {60}));
  ASSERT_TRUE(spectrum.ok()) << spectrum.status();
  for (int i = 0; i < 60; ++i) {
    const double variance = spectrum->pca.variances[i];
    EXPECT_GE(variance, 0);
    EXPECT_TRUE(std::isfinite(spectrum->pca.variances_high[i]));
    if (i >= 19) {
      EXPECT_LT(variance, 1e-13 * spectrum->pca.variances[0]);
    }
  }
}

TEST(EstimateSpectrum, WorksInOneDimension) {
  const auto spectrum = Estimate({1, 2, 3, 6}, {}, WithSecondPass({1, 2, 3, 6}, {}));
  ASSERT_TRUE(spectrum.ok()) << spectrum.status();
  EXPECT_EQ(spectrum->mean, std::vector<double>{3});
  EXPECT_NEAR(spectrum->diagonal.variances[0], 14.0 / 3, 1e-15);
  EXPECT_NEAR(spectrum->pca.variances[0], 14.0 / 3, 1e-15);
  EXPECT_EQ(spectrum->vectors, std::vector<double>{1});
  EXPECT_NEAR(spectrum->pca.variances_low[0], spectrum->diagonal.variances_low[0], 1e-6);
  EXPECT_EQ(spectrum->recommended_basis, "diagonal");
  EXPECT_EQ(spectrum->diagonal.off_diagonal_energy, 0);
}

TEST(EstimateSpectrum, ConstantDimensionsHaveVarianceZeroExactly) {
  std::vector<double> values;
  for (int r = 0; r < 10001; ++r) {
    values.insert(values.end(), {0.1f, static_cast<float>(r % 7), -1e6f, 0.3f});
  }
  for (const Kernels* kernels : AllKernels()) {
    EstimateOptions options = WithSecondPass(values, {4});
    options.kernels = kernels;
    const auto spectrum = Estimate(values, {4}, options);
    ASSERT_TRUE(spectrum.ok()) << spectrum.status();
    for (const int i : {0, 2, 3}) {
      EXPECT_EQ(spectrum->mean[i], double{values[i]});
      for (int j = 0; j < 4; ++j) EXPECT_EQ(spectrum->covariance[i * 4 + j], 0);
      EXPECT_EQ(spectrum->diagonal.variances_low[i], 0);
      EXPECT_EQ(spectrum->diagonal.variances_high[i], 0);
    }
    EXPECT_EQ(spectrum->pca.variances[1], 0);
    EXPECT_EQ(spectrum->pca.variances_high[1], 0);
    EXPECT_EQ(spectrum->vectors[1], 1);  // the second axis comes first, and points upwards
  }
  const auto all = Estimate({5, 5, 5, 5, 5, 5}, {3});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->pca.variances, (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(all->pca.off_diagonal_energy, 0);
  EXPECT_EQ(all->diagonal.regime, Regime::kLow);
}

TEST(EstimateSpectrum, ScalesPixelsByDefaultAndKeepsFloats) {
  const std::vector<double> values = {0, 255, 255, 0, 51, 204};
  MemorySource pixels(values, {2});
  pixels.pixels = true;
  const auto scaled = EstimateSpectrum(pixels, {});
  ASSERT_TRUE(scaled.ok());
  EXPECT_EQ(scaled->scaling.text, "-1:1");
  EXPECT_NEAR(scaled->mean[0], -0.2, 1e-15);
  EXPECT_NEAR(scaled->diagonal.variances[0], 1.12, 1e-14);  // of -1, 1, -0.6
  EXPECT_NEAR(scaled->covariance[1], -1.12, 1e-14);
  const auto floats = Estimate(values, {2});
  ASSERT_TRUE(floats.ok());
  EXPECT_EQ(floats->scaling, None());
  EXPECT_NEAR(floats->mean[0], 102, 1e-12);
  EstimateOptions options;
  options.scaling = *ParseScaling("0:1");
  const auto unit = Estimate(values, {2}, options);
  ASSERT_TRUE(unit.ok());
  EXPECT_NEAR(unit->diagonal.variances[0], 0.28, 1e-15);
}

TEST(EstimateSpectrum, SaysRegimeAndRecommendation) {
  // Independent axes with variances 4 and 0.25, in so few samples that chance correlates them.
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal;
  std::vector<double> mixed, low, high;
  for (int r = 0; r < 100; ++r) {
    const double a = normal(random), b = normal(random);
    mixed.insert(mixed.end(), {static_cast<float>(2 * a), static_cast<float>(0.5 * b)});
    low.insert(low.end(), {static_cast<float>(0.5 * a), static_cast<float>(0.5 * b)});
    high.insert(high.end(), {static_cast<float>(2 * a), static_cast<float>(2 * a + 2 * b)});
  }
  const auto first = Estimate(mixed, {2}), second = Estimate(low, {2}), third = Estimate(high, {2});
  ASSERT_TRUE(first.ok() && second.ok() && third.ok());
  EXPECT_EQ(first->diagonal.regime, Regime::kMixed);
  EXPECT_EQ(first->diagonal.fraction_above_one, 0.5);
  EXPECT_EQ(first->recommended_basis, "diagonal") << first->recommended_basis_reason;
  EXPECT_EQ(second->diagonal.regime, Regime::kLow);
  EXPECT_EQ(second->diagonal.fraction_above_one, 0);
  EXPECT_EQ(third->diagonal.regime, Regime::kHigh);
  EXPECT_EQ(third->recommended_basis, "pca");
  EXPECT_THAT(third->recommended_basis_reason, HasSubstr("more than the 1 %"));
}

// What is off the diagonal of two samples is what chance puts there, however much it is.
TEST(EstimateSpectrum, DoesNotTakeChanceForFewPercent) {
  const auto two = Estimate({1, 2, 3, -1, 0.5, 2}, {3});
  ASSERT_TRUE(two.ok());
  EXPECT_GT(two->diagonal.off_diagonal_energy, 0.3);
  EXPECT_EQ(two->recommended_basis, "diagonal");
  EXPECT_THAT(
      two->recommended_basis_reason,
      testing::AllOf(HasSubstr("energy is off the diagonal"), HasSubstr("on average in 2 samples"),
                     HasSubstr("not more than 1 % beyond chance"),
                     testing::Not(HasSubstr("not more than the 1 %"))));
}

TEST(EstimateSpectrum, LeavesPrincipalDirectionsOutWhenTold) {
  EstimateOptions options;
  options.want_pca = false;
  const auto spectrum = Estimate(Correlated(100, 5, 0, 1, 1), {5}, options);
  ASSERT_TRUE(spectrum.ok());
  EXPECT_FALSE(spectrum->has_pca());
  EXPECT_EQ(spectrum->pca, Basis());
  EXPECT_EQ(spectrum->recommended_basis, "diagonal");
  EXPECT_THAT(spectrum->FindBasis("pca").status().message(), HasSubstr("only diagonal"));
}

TEST(EstimateSpectrum, PassesOnWhatTheSourceSkipped) {
  MemorySource source({1, 2, 3}, {1});
  source.left_out = 17;
  const auto spectrum = EstimateSpectrum(source, {});
  ASSERT_TRUE(spectrum.ok());
  EXPECT_EQ(spectrum->skipped, 17);
  EXPECT_EQ(spectrum->samples, 3);
}

TEST(EstimateSpectrumErrors, NameTheDataAndWhatToDo) {
  EstimateOptions options;
  options.source = "latents.npy";
  EXPECT_THAT(
      Estimate({1, 2}, {2}, options).status().message(),
      AllOf(HasSubstr("latents.npy: "), HasSubstr("holds 1 sample;"), HasSubstr("at least 2")));
  EXPECT_THAT(Estimate({}, {2}, options).status().message(), HasSubstr("holds 0 samples"));
  MemorySource skipping({}, {2});
  skipping.left_out = 4;
  EXPECT_THAT(EstimateSpectrum(skipping, options).status().message(),
              HasSubstr("beside 4 left out"));
  EXPECT_THAT(
      Estimate({}, {3, 512, 512}, options).status().message(),
      AllOf(HasSubstr("3x512x512"), HasSubstr("20000"), HasSubstr("encode them to latents")));
  EXPECT_EQ(Estimate({}, {1 << 30, 1 << 30, 1 << 30, 1 << 30}, options).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Estimate({}, {3, 0}, options).status().message(), HasSubstr("empty"));
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {infinity, -infinity, std::nanf("")}) {
    EXPECT_THAT(Estimate({1, 2, 3, bad}, {2}, options).status().message(),
                HasSubstr("dimension 1"));
    EXPECT_THAT(Estimate({bad, 2, 3, 4}, {2}, options).status().message(),
                HasSubstr("dimension 0"));
  }
  options.scaling = ParseScaling("-1e200:1e200").value();
  EXPECT_THAT(Estimate({1, 2, 3, 4}, {2}, options).status().message(), HasSubstr("too large"));
}

TEST(EstimateSpectrumErrors, HandOnWhatTheReaderSays) {
  MemorySource source(Correlated(10, 2, 0, 1, 1), {2}, 3);
  source.error = absl::DataLossError("latents.npy: ends in the middle of sample 6");
  source.error_after = 12;
  EstimateOptions options;
  options.source = "latents.npy";
  EXPECT_EQ(EstimateSpectrum(source, options).status(), source.error);
}

TEST(EstimateSpectrumErrors, FindDataThatChangesBetweenThePasses) {
  const std::vector<double> values = Correlated(10, 2, 0, 1, 1);
  const std::vector<double> shorter(values.begin(), values.end() - 2);
  const auto fewer = Estimate(values, {2}, WithSecondPass(shorter, {2}));
  EXPECT_EQ(fewer.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(fewer.status().message(), HasSubstr("second pass read 9 samples, the first 10"));
  EXPECT_EQ(Estimate(values, {2}, WithSecondPass(values, {4})).status().code(),
            absl::StatusCode::kDataLoss);
  EstimateOptions gone;
  gone.reopen = [] { return absl::NotFoundError("latents.npy: no such file"); };
  EXPECT_EQ(Estimate(values, {2}, gone).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace mergeplan
