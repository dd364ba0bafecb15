#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "planner/data/samples.h"
#include "planner/spectrum/estimate.h"

namespace mergeplan {
namespace {

constexpr char kPath[] = "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz";

TEST(FashionMnist, HasTheKnownSpectrum) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "74 billion operations take too long with sanitizers";
#endif
  struct stat info;
  if (stat(kPath, &info) != 0)
    GTEST_SKIP() << kPath << " is missing (Debian: dataset-fashion-mnist)";
  EstimateOptions options;
  options.source = kPath;
  options.reopen = [] { return OpenSamples(kPath, {}); };
  auto source = OpenSamples(kPath, {});
  ASSERT_TRUE(source.ok()) << source.status();
  const auto spectrum = EstimateSpectrum(**source, options);
  ASSERT_TRUE(spectrum.ok()) << spectrum.status();
  EXPECT_EQ(spectrum->samples, 60000);
  EXPECT_EQ(spectrum->shape, (std::vector<std::int64_t>{28, 28}));
  EXPECT_EQ(spectrum->scaling.text, "-1:1");
  EXPECT_EQ(spectrum->diagonal.regime, Regime::kLow);
  EXPECT_EQ(spectrum->diagonal.fraction_above_one, 0);
  EXPECT_EQ(spectrum->pca.regime, Regime::kMixed);
  EXPECT_NEAR(spectrum->pca.fraction_above_one * 784, 24, 2);
  EXPECT_NEAR(spectrum->pca.variances[0], 79, 0.5);
  EXPECT_EQ(spectrum->recommended_basis, "pca");
  EXPECT_LT(spectrum->pca.off_diagonal_energy, 1e-20);
  // The total variance does not depend on the basis.
  double diagonal = 0, pca = 0;
  for (int i = 0; i < 784; ++i) {
    diagonal += spectrum->diagonal.variances[i];
    pca += spectrum->pca.variances[i];
  }
  EXPECT_NEAR(diagonal, pca, 1e-9);
}

}  // namespace
}  // namespace mergeplan
