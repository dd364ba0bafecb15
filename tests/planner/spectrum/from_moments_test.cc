// Moments that others have computed, against one pass over the samples.
#include "planner/spectrum/from_moments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/planner/spectrum/estimates.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

constexpr int kDims = 6;

// By the definitions, in two passes.
CentralMoments PlainMoments(const std::vector<double>& values, int first, int last) {
  CentralMoments out;
  out.count = last - first;
  out.shape = {1, 2, 3};
  for (auto* sums : {&out.mean, &out.m2, &out.m3, &out.m4}) sums->resize(kDims);
  out.comoment.resize(kDims * kDims);
  for (int r = first; r < last; ++r) {
    for (int i = 0; i < kDims; ++i) out.mean[i] += values[r * kDims + i] / (last - first);
  }
  for (int r = first; r < last; ++r) {
    for (int i = 0; i < kDims; ++i) {
      const double x = values[r * kDims + i] - out.mean[i];
      out.m2[i] += x * x;
      out.m3[i] += x * x * x;
      out.m4[i] += x * x * x * x;
      for (int j = 0; j < kDims; ++j) {
        out.comoment[i * kDims + j] += x * (values[r * kDims + j] - out.mean[j]);
      }
    }
  }
  return out;
}

TEST(FromMoments, IsOnePassOverTheSamples) {
  const std::vector<double> values = Correlated(500, kDims, 2, 1, 4);
  const Spectrum pass = *Estimate(values, {1, 2, 3});
  CentralMoments sum = PlainMoments(values, 0, 130);
  AddMoments(PlainMoments(values, 130, 500), sum);
  for (const CentralMoments& moments : {PlainMoments(values, 0, 500), sum}) {
    EstimateOptions options;
    options.source = "there";
    const auto made = SpectrumFromMoments(moments, options);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->samples, 500);
    EXPECT_EQ(made->source, "there");
    EXPECT_EQ(made->recommended_basis, pass.recommended_basis);
    EXPECT_EQ(made->diagonal.interval, "fourth-moment");
    for (int i = 0; i < kDims; ++i) {
      EXPECT_NEAR(made->mean[i], pass.mean[i], 1e-13);
      EXPECT_NEAR(made->diagonal.variances_low[i], pass.diagonal.variances_low[i], 1e-12);
      EXPECT_NEAR(made->diagonal.skewness[i], pass.diagonal.skewness[i], 1e-11);
      EXPECT_NEAR(made->pca.variances[i], pass.pca.variances[i], 1e-12);
      EXPECT_NEAR(made->dct.variances[i], pass.dct.variances[i], 1e-12);
    }
    for (int e = 0; e < kDims * kDims; ++e) {
      EXPECT_NEAR(made->covariance[e], pass.covariance[e], 1e-12);
    }
  }
}

TEST(FromMoments, DoesWithoutWhatIsNotKnown) {
  const std::vector<double> values = Correlated(500, kDims, 2, 1, 4);
  const Spectrum pass = *Estimate(values, {1, 2, 3});
  CentralMoments moments = PlainMoments(values, 0, 100);
  CentralMoments rest = PlainMoments(values, 100, 500);
  rest.comoment.clear();
  rest.m3.clear();
  rest.m4.clear();
  AddMoments(rest, moments);
  const auto made = SpectrumFromMoments(moments, {});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_FALSE(made->has_covariance());
  EXPECT_FALSE(made->has_pca());
  EXPECT_EQ(made->diagonal.interval, "gaussian");
  for (int i = 0; i < kDims; ++i) {
    EXPECT_NEAR(made->diagonal.variances[i], pass.diagonal.variances[i], 1e-12);
  }
}

TEST(FromMoments, NamesWhatDoesNotFit) {
  const CentralMoments good = PlainMoments(Correlated(50, kDims, 2, 1, 4), 0, 50);
  const auto says = [&](auto change) {
    CentralMoments bad = good;
    change(bad);
    return std::string(SpectrumFromMoments(bad, {}).status().message());
  };
  using M = CentralMoments&;
  EXPECT_THAT(says([](M m) { m.count = 1; }), HasSubstr("moments of 1 samples"));
  EXPECT_THAT(says([](M m) { m.shape = {2, 2}; }), HasSubstr("mean has 6 numbers, the shape is"));
  EXPECT_THAT(says([](M m) { m.shape = {-1, -6}; }), HasSubstr("the shape is [-1, -6]"));
  EXPECT_THAT(says([](M m) { m.m2.pop_back(); }), HasSubstr("m2 has 5 numbers, expected 6"));
  EXPECT_THAT(says([](M m) { m.m4.clear(); }), HasSubstr("m4 has 0 numbers, expected 6"));
  EXPECT_THAT(says([](M m) { m.m2[3] = -1; }), HasSubstr("m2 is -1 in dimension 3"));
  EXPECT_THAT(says([](M m) { m.mean[2] = std::numeric_limits<double>::quiet_NaN(); }),
              HasSubstr("mean is nan in dimension 2"));
  EXPECT_THAT(says([](M m) { m.comoment.pop_back(); }), HasSubstr("comoment has 35 numbers"));
  EXPECT_THAT(says([](M m) { m.comoment[7] *= 1.01; }),
              HasSubstr("on the diagonal in dimension 1"));
  EXPECT_THAT(says([](M m) { m.comoment[6] += 1; }), HasSubstr("expected a symmetric matrix"));
  EXPECT_THAT(says([](M m) { m.comoment[6] = std::numeric_limits<double>::infinity(); }),
              HasSubstr("not finite; expected a symmetric matrix"));
  // Divided by the number of samples, as a mean would be: the mistake that is easily made.
  EXPECT_THAT(says([](M m) { m.m4[2] /= 50; }), HasSubstr("m4 is"));
  EXPECT_THAT(says([](M m) { m.m3[4] = 2 * std::sqrt(m.m2[4] * m.m4[4]); }),
              HasSubstr("in dimension 4, expected at most sqrt(m2 m4)"));
  EXPECT_THAT(says([](M m) {
                m.comoment[1] = m.comoment[6] = 1.1 * std::sqrt(m.comoment[0] * m.comoment[7]);
              }),
              HasSubstr("comoment has"));
  EstimateOptions sure;
  sure.confidence = 1;
  EXPECT_THAT(std::string(SpectrumFromMoments(good, sure).status().message()),
              HasSubstr("confidence is 1; expected"));
}

TEST(FromMoments, RefusesDirectionsOfNegativeVariance) {
  // Every pair of dimensions could be real, the three together cannot.
  CentralMoments moments;
  moments.count = 10;
  moments.shape = {3};
  moments.mean = {0, 0, 0};
  moments.m2 = {9, 9, 9};
  moments.comoment = {9, 8, 8, 8, 9, -8, 8, -8, 9};
  EXPECT_THAT(std::string(SpectrumFromMoments(moments, {}).status().message()),
              HasSubstr("comoment has directions of negative variance"));
  moments.comoment = {9, 8, 8, 8, 9, 8, 8, 8, 9};
  EXPECT_TRUE(SpectrumFromMoments(moments, {}).ok());
}

TEST(FromMoments, TakesTwoPointsAndRounding) {
  // Two samples have the least fourth moment there can be, here rounded to single precision.
  CentralMoments moments;
  moments.count = 2;
  moments.shape = {1};
  moments.mean = {0};
  moments.m2 = {static_cast<double>(0.02F)};
  moments.m3 = {0};
  moments.m4 = {static_cast<double>(2 * 0.01F * 0.01F) * (1 - 1e-7)};
  EXPECT_TRUE(SpectrumFromMoments(moments, {}).ok());
}

}  // namespace
}  // namespace mergeplan
