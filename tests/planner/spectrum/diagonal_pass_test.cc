// Moments along the data's own axes from a plain file, against sums in long double.
#include "planner/spectrum/diagonal_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <random>

#include "absl/base/casts.h"
#include "absl/strings/str_cat.h"
#include "planner/spectrum/merge.h"
#include "tests/planner/spectrum/estimates.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

DiagonalMoments Moments(const std::string& path, int d, int threads = 2,
                        const Kernels& kernels = BestKernels()) {
  const auto source = OpenSamples(path, {});
  EXPECT_TRUE(source.ok()) << source.status();
  const auto moments = ReadDiagonalMoments(**source, d, threads, kernels);
  EXPECT_TRUE(moments.ok() && moments->has_value()) << moments.status();
  return **moments;
}

struct Powers {
  long double mean = 0, m2 = 0, m3 = 0, m4 = 0;
};

// Of dimension i of n rows: one sum after the other in long double.
Powers PlainMoments(const std::vector<double>& values, int n, int d, int i) {
  Powers out;
  for (int r = 0; r < n; ++r) out.mean += values[static_cast<std::size_t>(r) * d + i];
  out.mean /= n;
  for (int r = 0; r < n; ++r) {
    const long double x = values[static_cast<std::size_t>(r) * d + i] - out.mean;
    out.m2 += x * x;
    out.m3 += x * x * x;
    out.m4 += x * x * x * x;
  }
  return out;
}

TEST(DiagonalMoments, AreThoseOfLongDouble) {
  std::mt19937_64 random(2);
  // Sizes around the borders of tiles, blocks and tasks, and of rows that are folded.
  const std::pair<int, int> sizes[] = {
      {1, 1},    {2, 1},    {63, 1},     {300'000, 1}, {5, 3},      {999, 7},   {777, 63},
      {400, 64}, {300, 65}, {130, 1000}, {9, 5000},    {3, 70'000}, {70'001, 3}};
  for (const auto& [n, d] : sizes) {
    for (const double mean : {0.0, 1e6}) {
      std::gamma_distribution<double> draw(2);
      std::vector<double> values(static_cast<std::size_t>(n) * d);
      for (double& v : values) v = mean + draw(random);
      std::vector<float> narrow(values.begin(), values.end());
      const bool as_float = (n + d) % 2 == 0;
      if (as_float) values.assign(narrow.begin(), narrow.end());
      const std::string path =
          as_float ? WriteNpy("<f4", {n, d}, narrow) : WriteNpy("<f8", {n, d}, values);
      const DiagonalMoments found = Moments(path, d);
      EXPECT_EQ(found.count, n);
      for (int i = 0; i < d; i += std::max(1, d / 7)) {
        const auto [centre, m2, m3, m4] = PlainMoments(values, n, d, i);
        // 1e-10 of what is well scaled, 1e-6 of what is not: what is asked of all moments.
        const double tolerance = mean > 0 ? 1e-7 : 1e-11;
        EXPECT_NEAR(found.mean[i], static_cast<double>(centre), 1e-14 * (1 + mean));
        EXPECT_NEAR(found.m2[i], static_cast<double>(m2), tolerance * static_cast<double>(m2));
        EXPECT_NEAR(found.m3[i], static_cast<double>(m3),
                    tolerance * static_cast<double>(m2) * std::sqrt(static_cast<double>(m2)));
        EXPECT_NEAR(found.m4[i], static_cast<double>(m4), 10 * tolerance * static_cast<double>(m4));
      }
      std::filesystem::remove(path);
    }
  }
}

// Sums about the first sample of a block become sums about the mean: little is lost where that one
// is far from all others.
TEST(DiagonalMoments, LoseLittleToAFirstSampleThatIsFarOff) {
  constexpr int kN = 3000;
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  for (const int d : {1, 5, 70}) {
    for (const double far : {1e3, 1e8}) {
      std::vector<double> values(static_cast<std::size_t>(kN) * d);
      for (double& v : values) v = normal(random);
      // The first sample of the file, and of the second block where there are several.
      for (int i = 0; i < d; ++i) {
        values[i] = far;
        values[static_cast<std::size_t>(65536 / d % kN) * d + i] -= far;
      }
      const std::string path = WriteNpy("<f8", {kN, d}, values);
      for (const Kernels* kernels : {&BaselineKernels(), X8664V3Kernels(), X8664V4Kernels()}) {
        if (kernels == nullptr) continue;
        const DiagonalMoments found = Moments(path, d, 1, *kernels);
        for (int i = 0; i < d; ++i) {
          const Powers plain = PlainMoments(values, kN, d, i);
          const double e2 = static_cast<double>(plain.m2), e4 = static_cast<double>(plain.m4);
          EXPECT_NEAR(found.m2[i], e2, 1e-11 * e2) << kernels->name << " " << d << " " << far;
          EXPECT_NEAR(found.m3[i], static_cast<double>(plain.m3), 1e-11 * e2 * std::sqrt(e2));
          EXPECT_NEAR(found.m4[i], e4, 1e-11 * e4);
        }
      }
      std::filesystem::remove(path);
    }
  }
}

// In place (numbers of the machine's own kind, where they can be mapped) and through a copy.
TEST(DiagonalMoments, InPlaceAreThoseOfACopy) {
  std::mt19937_64 random(6);
  std::normal_distribution<float> normal(3);
  for (const auto& [n, d] : {std::pair(50'000, 7), {3000, 1500}, {70, 70'000}}) {
    std::vector<float> values(static_cast<std::size_t>(n) * d);
    for (float& v : values) v = normal(random);
    const std::string here = WriteNpy("<f4", {n, d}, values);
    for (float& v : values)
      v = absl::bit_cast<float>(__builtin_bswap32(absl::bit_cast<std::uint32_t>(v)));
    const std::string there = WriteNpy(">f4", {n, d}, values);
    const DiagonalMoments a = Moments(here, d), b = Moments(there, d);
    EXPECT_EQ(a.mean, b.mean);
    EXPECT_EQ(a.m2, b.m2);
    EXPECT_EQ(a.m4, b.m4);
    std::filesystem::remove(here);
    std::filesystem::remove(there);
  }
}

TEST(DiagonalMoments, SayThatAFileBecameShorter) {
  const std::string path = WriteNpy("<f4", {100'000, 8}, std::vector<float>(800'000, 1));
  const auto source = OpenSamples(path, {});
  ASSERT_TRUE(source.ok()) << source.status();
  for (const std::int64_t left : {3'000'000, 100}) {
    std::filesystem::resize_file(path, static_cast<std::uintmax_t>(left));
    const auto moments = ReadDiagonalMoments(**source, 8, 2, BestKernels());
    EXPECT_EQ(moments.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(moments.status().message(), HasSubstr("became shorter while it was read"));
  }
  std::filesystem::remove(path);
}

TEST(DiagonalMoments, DoNotDependOnThreads) {
  std::vector<float> values;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (int k = 0; k < 6'000'000; ++k)
    values.push_back(k % 64 == 0 ? normal(random) : 0.25F * (k % 97));
  const std::string path = WriteNpy("<f4", {60'000, 100}, values);
  const DiagonalMoments one = Moments(path, 100, 1), four = Moments(path, 100, 4);
  EXPECT_EQ(one.mean, four.mean);
  EXPECT_EQ(one.m4, four.m4);
  std::filesystem::remove(path);
}

TEST(DiagonalMoments, OfAConstantAreExact) {
  const std::string path = WriteNpy("<f4", {1000, 3}, std::vector<float>(3000, 0.1F));
  const DiagonalMoments found = Moments(path, 3);
  EXPECT_EQ(found.mean[0], static_cast<double>(0.1F));
  EXPECT_EQ(found.m2, std::vector<double>(3, 0));
  EXPECT_EQ(found.Kurtosis(), std::vector<double>(3, 3));
  std::filesystem::remove(path);
}

TEST(DiagonalMoments, LeaveOddFilesToTheirReader) {
  std::vector<float> values(3000, 1);
  for (const float odd : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    values[2000] = odd;
    const std::string path = WriteNpy("<f4", {1000, 3}, values);
    const auto source = OpenSamples(path, {});
    EXPECT_FALSE(ReadDiagonalMoments(**source, 3, 2, BestKernels())->has_value());
    // Through the estimate the sample is named, or left out.
    EstimateOptions options;
    options.want_covariance = options.want_pca = options.want_dct = false;
    EXPECT_THAT(EstimateSpectrum(**source, options).status().message(), HasSubstr("sample 666"));
    SamplesOptions skip;
    skip.skip_nonfinite = true;
    const auto skipping = OpenSamples(path, skip);
    EXPECT_EQ(EstimateSpectrum(**skipping, options)->skipped, 1);
    std::filesystem::remove(path);
  }
}

// Other types go the same way, decoded.
TEST(DiagonalMoments, OfEveryType) {
  const auto check = [](const std::string& path) {
    const DiagonalMoments found = Moments(path, 2);
    EXPECT_THAT(found.mean, ::testing::ElementsAre(3, 5));
    EXPECT_THAT(found.m2, ::testing::ElementsAre(8, 2));
    std::filesystem::remove(path);
  };
  check(WriteNpy<std::uint8_t>("|u1", {2, 2}, {1, 4, 5, 6}));
  check(WriteNpy<std::int64_t>("<i8", {2, 2}, {1, 4, 5, 6}));
  check(WriteNpy<std::int16_t>("<i2", {2, 2}, {1, 4, 5, 6}));
  check(WriteNpy<std::uint16_t>("<f2", {2, 2}, {0x3C00, 0x4400, 0x4500, 0x4600}));
  check(WriteNpy<std::uint16_t>("<V2", {2, 2}, {0x3F80, 0x4080, 0x40A0, 0x40C0}));
  check(WriteNpy<double>("<f8", {2, 2}, {1, 4, 5, 6}));
}

TEST(DiagonalOnly, IsTheDiagonalOfTheWhole) {
  const std::vector<double> values = Correlated(500, 6, 3, 1, 4);
  const auto whole = Estimate(values, {1, 2, 3});
  EstimateOptions options;
  options.want_covariance = options.want_pca = options.want_dct = false;
  const auto diagonal = Estimate(values, {1, 2, 3}, options);
  ASSERT_TRUE(diagonal.ok()) << diagonal.status();
  EXPECT_FALSE(diagonal->has_covariance());
  EXPECT_EQ(diagonal->recommended_basis, "diagonal");
  for (int i = 0; i < 6; ++i) {
    EXPECT_NEAR(diagonal->diagonal.variances[i], whole->diagonal.variances[i], 1e-12);
    EXPECT_NEAR(diagonal->diagonal.variances_low[i], whole->diagonal.variances_low[i], 1e-12);
  }
  // Its file, and parts of it.
  const std::string path = absl::StrCat(::testing::TempDir(), "diagonal only.toml");
  ASSERT_TRUE(WriteSpectrum(*diagonal, path).ok());
  const auto read = ReadSpectrum(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, *diagonal);
  const std::vector<double> first(values.begin(), values.begin() + 600),
      second(values.begin() + 600, values.end());
  const auto merged =
      MergeSpectra({*Estimate(first, {1, 2, 3}, options), *Estimate(second, {1, 2, 3})}, {});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_FALSE(merged->has_covariance());
  for (int i = 0; i < 6; ++i) {
    EXPECT_NEAR(merged->diagonal.variances[i], whole->diagonal.variances[i], 1e-12);
    EXPECT_NEAR(merged->diagonal.kurtosis[i], whole->diagonal.kurtosis[i], 1e-11);
  }
  options.bootstrap = 10;
  EXPECT_THAT(Estimate(values, {6}, options).status().message(), HasSubstr("need the covariance"));
}

// The covariance reads plain files by several threads, too: the same bits as one sample after
// another, and what is not finite is told or left out as ever.
TEST(BatchesOfPlainFiles, AreThoseOfTheSource) {
  constexpr int kN = 20'000, kD = 3;  // three batches
  std::vector<double> values = Correlated(kN, kD, 5, 2, 31);
  EstimateOptions options;
  const auto read = [&](const SamplesOptions& samples, int threads) -> absl::StatusOr<Spectrum> {
    const auto source = OpenSamples(WriteNpy("<f8", {kN, kD}, values), samples);
    EXPECT_NE((*source)->row_file(), nullptr);
    EstimateOptions mine = options;
    mine.threads = threads;
    return EstimateSpectrum(**source, mine);
  };
  const auto same = [](const Spectrum& a, const Spectrum& b) {
    return a.samples == b.samples && a.mean == b.mean && a.covariance == b.covariance &&
           a.diagonal.kurtosis == b.diagonal.kurtosis && a.vectors == b.vectors;
  };
  const auto expected = Estimate(values, {kD}, options, 777);
  for (const int threads : {1, 3}) EXPECT_TRUE(same(*read({}, threads), *expected));
  for (const int bad : {0, 9'000, kN - 1}) {
    const double kept = values[bad * kD + 1];
    values[bad * kD + 1] = bad == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
    EXPECT_THAT(read({}, 2).status().message(),
                HasSubstr(absl::StrCat("sample ", bad, " (counted from 0) has 1 value that is")));
    SamplesOptions skip;
    skip.skip_nonfinite = true;
    const auto found = read(skip, 2);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->skipped, 1);
    std::vector<double> rest = values;
    rest.erase(rest.begin() + bad * kD, rest.begin() + (bad + 1) * kD);
    EXPECT_TRUE(same(*found, *Estimate(rest, {kD}, options, 777))) << bad;
    values[bad * kD + 1] = kept;
  }
}

}  // namespace
}  // namespace mergeplan
