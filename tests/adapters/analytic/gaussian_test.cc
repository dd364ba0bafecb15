#include "adapters/analytic/gaussian.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/adapters/support.h"

namespace mergeplan {
namespace {

using ::mergeplan::testing::MakeSpectrum;
using ::mergeplan::testing::TemporaryFolder;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

TEST(GaussianTeacher, TakesTheVariancesOfTheBasisAskedFor) {
  const TemporaryFolder folder;
  const Spectrum spectrum = MakeSpectrum({3.0, 1.5, 0.2});
  const std::string path = folder.File("spectrum.toml");
  ASSERT_TRUE(WriteSpectrum(spectrum, path).ok());

  const auto recommended = GaussianTeacher::Load(path, "");
  ASSERT_TRUE(recommended.ok()) << recommended.status();
  EXPECT_EQ(recommended->basis(), "pca");
  EXPECT_EQ(recommended->variances(), spectrum.pca.variances);
  EXPECT_EQ(recommended->sha256().size(), 64u);

  const auto diagonal = GaussianTeacher::Load(path, "diagonal");
  ASSERT_TRUE(diagonal.ok()) << diagonal.status();
  EXPECT_EQ(diagonal->variances(), spectrum.diagonal.variances);
}

TEST(GaussianTeacher, DecodesToDataUnitsWithTheMean) {
  const TemporaryFolder folder;
  const std::string path = folder.File("spectrum.toml");
  ASSERT_TRUE(WriteSpectrum(MakeSpectrum({3.0, 1.5, 0.2}), path).ok());
  const std::vector<double> rows = {1, 0, 0, 0, 2, -1};

  const auto pca = GaussianTeacher::Load(path, "pca");
  ASSERT_TRUE(pca.ok()) << pca.status();
  // Axis 0 is (0.8, 0.6, 0), axis 1 is (-0.6, 0.8, 0), axis 2 is (0, 0, 1).
  EXPECT_THAT(pca->Decode(rows), Pointwise(DoubleNear(1e-14), {0.25 + 0.8, 0.5 + 0.6, 0.75,  //
                                                               0.25 - 1.2, 0.5 + 1.6, 0.75 - 1}));
  const auto diagonal = GaussianTeacher::Load(path, "diagonal");
  ASSERT_TRUE(diagonal.ok()) << diagonal.status();
  EXPECT_THAT(diagonal->Decode(rows),
              Pointwise(DoubleNear(1e-14), {1.25, 0.5, 0.75, 0.25, 2.5, -0.25}));
}

TEST(GaussianTeacher, NamesTheFileInErrors) {
  const TemporaryFolder folder;
  const std::string path = folder.File("spectrum.toml");
  EXPECT_THAT(GaussianTeacher::Load(path, "").status().message(), HasSubstr("spectrum.toml"));
  ASSERT_TRUE(WriteSpectrum(MakeSpectrum({3.0, 1.5}), path).ok());
  const absl::Status unknown = GaussianTeacher::Load(path, "dct").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(unknown.message(), ::testing::AllOf(HasSubstr("spectrum.toml"), HasSubstr("dct")));
}

}  // namespace
}  // namespace mergeplan
