// Merged spectra against one pass over everything.
#include "planner/spectrum/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "planner/spectrum/reservoir.h"
#include "tests/planner/spectrum/estimates.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

std::vector<Spectrum> PartsOf(const std::vector<double>& values, int d,
                              const std::vector<int>& sizes) {
  std::vector<Spectrum> parts;
  auto at = values.begin();
  for (const int n : sizes) {
    const std::vector<double> part(at, at + n * d);
    at += n * d;
    EstimateOptions options;
    options.want_pca = options.want_dct = false;
    options.source = "part";
    parts.push_back(*Estimate(part, {1, 2, d / 2}, options));
  }
  return parts;
}

TEST(MergeSpectra, IsOnePassUpToRounding) {
  constexpr int kD = 6, kN = 700;
  for (const double mean : {0.0, 3.0, 1e6}) {
    std::vector<double> values = Correlated(kN, kD, mean, 1, 4);
    for (int k = 0; k < kN * kD; ++k) values[k] += 0.002 * (k / kD);  // drifts
    const auto whole = Estimate(values, {1, 2, 3});
    ASSERT_TRUE(whole.ok());
    for (const std::vector<int>& sizes :
         {std::vector<int>{700}, {350, 350}, {2, 698}, {100, 2, 300, 298}}) {
      const auto merged = MergeSpectra(PartsOf(values, kD, sizes), {});
      ASSERT_TRUE(merged.ok()) << merged.status();
      EXPECT_EQ(merged->samples, kN);
      const double tolerance = mean > 1e3 ? 1e-9 : 1e-12;
      for (int i = 0; i < kD; ++i) {
        EXPECT_NEAR(merged->mean[i], whole->mean[i], 1e-15 * std::abs(mean) + 1e-14);
        EXPECT_NEAR(merged->diagonal.kurtosis[i], whole->diagonal.kurtosis[i], 10 * tolerance);
        EXPECT_NEAR(merged->diagonal.skewness[i], whole->diagonal.skewness[i], 10 * tolerance);
        EXPECT_NEAR(merged->diagonal.variances_high[i], whole->diagonal.variances_high[i],
                    10 * tolerance);
        EXPECT_NEAR(merged->pca.variances[i], whole->pca.variances[i], 10 * tolerance);
        EXPECT_NEAR(merged->dct.variances[i], whole->dct.variances[i], 10 * tolerance);
      }
      for (int e = 0; e < kD * kD; ++e) {
        EXPECT_NEAR(merged->covariance[e], whole->covariance[e], tolerance);
      }
      EXPECT_EQ(merged->recommended_basis, whole->recommended_basis);
      EXPECT_EQ(merged->pca.interval, "gaussian");
      EXPECT_EQ(merged->diagonal.interval, "fourth-moment");
    }
  }
}

TEST(MergeSpectra, NamesWhatDoesNotFit) {
  const std::vector<double> values = Correlated(40, 4, 0, 1, 4);
  const auto says = [](const std::vector<Spectrum>& parts) {
    return std::string(MergeSpectra(parts, {}).status().message());
  };
  EXPECT_THAT(says({}), HasSubstr("no spectrum"));
  std::vector<Spectrum> parts = PartsOf(values, 4, {20, 20});
  EXPECT_THAT(says({parts[0], parts[1], parts[0]}), HasSubstr("part 3 (part) is the same data"));
  parts[1].shape = {4};
  EXPECT_THAT(says(parts), HasSubstr("shape [4], expected [1, 2, 2]"));
  parts[1].shape = {1, 2, 2};
  parts[1].scaling = *ParseScaling("0:1");
  EXPECT_THAT(says(parts), HasSubstr("scaling \"0:1\""));
  parts[1].scaling = {};
  parts[1].shrinkage_rule = "oas";
  EXPECT_THAT(says(parts), HasSubstr("shrunk by oas"));
  parts[1].shrinkage_rule = "none";
  parts[1].samples = 0;
  EXPECT_THAT(says(parts), HasSubstr("of 0 samples"));
}

TEST(RowReservoir, IsARandomPartThatDependsOnTheSeedOnly) {
  std::vector<double> rows;
  for (int k = 0; k < 1000; ++k) rows.insert(rows.end(), {double(k), -double(k)});
  const auto kept = [&](std::int64_t capacity, int batch, std::uint64_t seed) {
    RowReservoir reservoir(2, capacity, seed);
    for (int k = 0; k < 1000; k += batch) {
      const int count = std::min(batch, 1000 - k);
      reservoir.Add(absl::MakeConstSpan(rows).subspan(2 * k, 2 * count), count);
    }
    EXPECT_EQ(reservoir.seen(), 1000);
    return reservoir.TakeRows();
  };
  EXPECT_EQ(kept(5000, 7, 1), rows);
  EXPECT_EQ(kept(50, 7, 1), kept(50, 1000, 1));
  EXPECT_NE(kept(50, 7, 1), kept(50, 7, 2));
  // Every sample is as likely as any other: the mean of the numbers kept is near 499.5.
  double sum = 0;
  for (int seed = 0; seed < 200; ++seed) {
    const std::vector<double> part = kept(50, 100, seed);
    ASSERT_EQ(part.size(), 100u);
    for (int k = 0; k < 50; ++k) {
      EXPECT_EQ(part[2 * k], -part[2 * k + 1]);
      sum += part[2 * k] / 10000;
    }
  }
  EXPECT_NEAR(sum, 499.5, 4 * 288.7 / 100);
}

}  // namespace
}  // namespace mergeplan
