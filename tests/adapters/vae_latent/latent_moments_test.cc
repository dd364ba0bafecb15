// Moments summed by LibTorch, where the latents lie, against one pass of the planner.
#include "adapters/vae_latent/latent_moments.h"

#include <ATen/ops/from_blob.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "adapters/runtime/device.h"
#include "planner/spectrum/estimate.h"
#include "tests/planner/spectrum/estimates.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

at::Tensor AsTensor(std::vector<double>& values) {
  return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size()) / 12, 3, 2, 2},
                       at::kDouble)
      .clone();
}

void ExpectOnePass(const at::Tensor& x, const std::vector<std::int64_t>& sizes,
                   const std::vector<double>& values, double tolerance) {
  LatentMoments moments;
  std::int64_t first = 0;
  for (const std::int64_t size : sizes) {
    ASSERT_TRUE(moments.Add(x.narrow(0, first, size)).ok());
    first += size;
  }
  const auto sums = moments.Sums();
  ASSERT_TRUE(sums.ok()) << sums.status();
  const auto ours = SpectrumFromMoments(*sums, {});
  ASSERT_TRUE(ours.ok()) << ours.status();
  const auto pass = Estimate(values, {3, 2, 2});
  ASSERT_TRUE(pass.ok());
  EXPECT_EQ(ours->samples, pass->samples);
  EXPECT_EQ(ours->shape, pass->shape);
  for (int i = 0; i < 12; ++i) {
    EXPECT_NEAR(ours->diagonal.variances_high[i] / pass->diagonal.variances_high[i], 1, tolerance);
    EXPECT_NEAR(ours->pca.variances[i] / pass->pca.variances[i], 1, tolerance);
    EXPECT_NEAR(ours->dct.variances[i] / pass->dct.variances[i], 1, tolerance);
    EXPECT_NEAR(ours->diagonal.skewness[i], pass->diagonal.skewness[i], 10 * tolerance);
  }
}

TEST(LatentMoments, AreThoseOfOnePass) {
  for (const double offset : {0.0, 1e6}) {
    std::vector<double> values = Correlated(300, 12, offset, 1, 4);
    const double tolerance = offset > 0 ? 1e-8 : 1e-11;
    ExpectOnePass(AsTensor(values), {300}, values, tolerance);
    ExpectOnePass(AsTensor(values), {1, 0, 99, 200}, values, tolerance);
  }
  std::vector<double> values = Correlated(300, 12, 1, 1, 4);
  const at::Tensor narrow = AsTensor(values).to(at::kBFloat16);
  const at::Tensor wide = narrow.to(at::kDouble).contiguous();
  values.assign(wide.const_data_ptr<double>(), wide.const_data_ptr<double>() + wide.numel());
  ExpectOnePass(narrow, {120, 180}, values, 1e-11);
}

TEST(LatentMoments, AreSummedOnCuda) {
  if (const auto device = OpenDevice("cuda"); !device.ok()) {
    GTEST_SKIP() << device.status().message();
  }
  std::vector<double> values = Correlated(300, 12, 1, 1, 4);
  ExpectOnePass(AsTensor(values).to(at::kCUDA), {1, 99, 200}, values, 1e-10);
}

TEST(LatentMoments, RefuseWhatTheyCannotTakeAndAddNothingOfIt) {
  std::vector<double> values = Correlated(50, 12, 1, 1, 4);
  const at::Tensor x = AsTensor(values);
  LatentMoments moments;
  EXPECT_THAT(moments.Sums().status().message(), HasSubstr("no latents"));
  ASSERT_TRUE(moments.Add(x).ok());
  const auto says = [&](const at::Tensor& bad) { return std::string(moments.Add(bad).message()); };
  at::Tensor broken = x.clone();
  broken[3][1][0][1] = std::numeric_limits<double>::infinity();
  EXPECT_THAT(says(broken), HasSubstr("not finite, or too large to be squared, in dimension 5"));
  EXPECT_THAT(says(x.flatten(1)), HasSubstr("shape [12], expected [3, 2, 2] as in the first"));
  EXPECT_THAT(says(x.flatten()), HasSubstr("have the shape [600], expected (n, ...)"));
  EXPECT_THAT(says(x.to(at::kComplexDouble)), HasSubstr("complex"));
  EXPECT_THAT(says(at::Tensor()), HasSubstr("undefined"));
  EXPECT_EQ(moments.count(), 50);
  const auto sums = moments.Sums();
  ASSERT_TRUE(sums.ok());
  for (const double value : sums->comoment) EXPECT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace mergeplan
