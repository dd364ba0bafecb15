#include "planner/spectrum/basis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "planner/spectrum/estimate.h"
#include "tests/planner/spectrum/memory_source.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

TEST(ParseScaling, ReadsBothForms) {
  const auto none = ParseScaling("none");
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(*none, Scaling());
  const auto pixels = ParseScaling("-1:1");
  ASSERT_TRUE(pixels.ok());
  EXPECT_EQ(pixels->text, "-1:1");
  EXPECT_EQ(pixels->Apply(0), -1);
  EXPECT_EQ(pixels->Apply(255), 1);
  EXPECT_NEAR(pixels->Invert(pixels->Apply(100)), 100, 1e-12);
  const auto unit = ParseScaling("0:+1.5e0");
  ASSERT_TRUE(unit.ok());
  EXPECT_DOUBLE_EQ(unit->Apply(255), 1.5);
}

TEST(ParseScaling, RefusesEverythingElseByName) {
  for (const char* text : {"",
                           "None",
                           "1",
                           "-1",
                           ":",
                           "-1:",
                           ":1",
                           "a:1",
                           "-1:b",
                           "-1:1:2",
                           "-1 :1",
                           "1:-1",
                           "1:1",
                           "nan:1",
                           "0:inf",
                           "-1e999:1",
                           "-1.7e308:1.7e308",
                           "0:1e-320",
                           "-1:1 ",
                           "++1:2"}) {
    const auto scaling = ParseScaling(text);
    ASSERT_FALSE(scaling.ok()) << text;
    EXPECT_EQ(scaling.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(scaling.status().message(), HasSubstr(std::string("\"") + text + "\""));
    EXPECT_THAT(scaling.status().message(), HasSubstr("LOW:HIGH"));
  }
}

TEST(SummarizeVariances, CountsStrictlyAboveOne) {
  Basis basis;
  basis.variances = {1, 0.5};
  SummarizeVariances(basis);
  EXPECT_EQ(ToString(basis.regime), "low");
  EXPECT_EQ(basis.fraction_above_one, 0);
  basis.variances = {1, 0.5, 1 + 1e-15, 9};
  SummarizeVariances(basis);
  EXPECT_EQ(ToString(basis.regime), "mixed");
  EXPECT_EQ(basis.fraction_above_one, 0.5);
  basis.variances = {2, 3};
  SummarizeVariances(basis);
  EXPECT_EQ(ToString(basis.regime), "high");
  EXPECT_EQ(basis.fraction_above_one, 1);
}

class BasisTest : public ::testing::Test {
 protected:
  static constexpr int kD = 6, kN = 500;
  void SetUp() override {
    std::vector<double> stored;
    for (int r = 0; r < kN; ++r) {
      for (int i = 0; i < kD; ++i) {
        stored.push_back(std::round(127 + 100 * std::sin(r * (i + 1.3)) * std::cos(r * 0.37)));
      }
    }
    MemorySource source(stored, {2, 3});
    source.pixels = true;
    auto spectrum = EstimateSpectrum(source, {});
    ASSERT_TRUE(spectrum.ok()) << spectrum.status();
    spectrum_ = *spectrum;
    for (const float value : stored) samples_.push_back(spectrum_.scaling.Apply(value));
  }
  Spectrum spectrum_;
  std::vector<double> samples_;
};

TEST_F(BasisTest, CoordinatesHaveTheBasisVariancesAndLeadBack) {
  ASSERT_EQ(spectrum_.Bases().size(), 3u);
  for (const Basis* basis : spectrum_.Bases()) {
    const auto y = ProjectToBasis(spectrum_, basis->name, samples_);
    ASSERT_TRUE(y.ok()) << y.status();
    ASSERT_EQ(y->size(), samples_.size());
    for (int i = 0; i < kD; ++i) {
      double sum = 0, squares = 0, across = 0;
      for (int r = 0; r < kN; ++r) {
        sum += (*y)[r * kD + i];
        squares += (*y)[r * kD + i] * (*y)[r * kD + i];
        across += (*y)[r * kD + i] * (*y)[r * kD + (i + 1) % kD];
      }
      EXPECT_NEAR(sum, 0, 1e-11);
      EXPECT_NEAR(squares / (kN - 1), basis->variances[i], 1e-13);
      if (basis->name == "pca") {
        EXPECT_NEAR(across / (kN - 1), 0, 1e-13);
      }
    }
    const auto back = FromBasis(spectrum_, basis->name, *y);
    ASSERT_TRUE(back.ok()) << back.status();
    for (std::size_t i = 0; i < samples_.size(); ++i) ASSERT_NEAR((*back)[i], samples_[i], 1e-14);
  }
}

TEST_F(BasisTest, RefusesOtherNamesAndSizes) {
  EXPECT_EQ(ProjectToBasis(spectrum_, "fourier", samples_).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(FromBasis(spectrum_, "PCA", samples_).status().message(),
              HasSubstr("diagonal, dct, pca"));
  samples_.pop_back();
  for (const char* basis : {"diagonal", "dct", "pca"}) {
    EXPECT_EQ(ProjectToBasis(spectrum_, basis, samples_).status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(FromBasis(spectrum_, basis, samples_).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(ProjectToBasis(spectrum_, "pca", {}).value().empty());
  EXPECT_FALSE(ProjectToBasis(Spectrum(), "diagonal", {}).ok());
}

}  // namespace
}  // namespace mergeplan
