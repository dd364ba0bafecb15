// analyze over data at the edge of what it is for: few samples, one dimension, far from zero, none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "tests/planner/cli/command_line.h"

namespace mergeplan {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// n samples of d values around `mean`.
std::string MakeSamples(const std::string& folder, std::int64_t n, std::int64_t d,
                        double mean = 0) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal(mean);
  std::vector<double> values(static_cast<std::size_t>(n * d));
  for (double& v : values) v = normal(random);
  NpzWriter npz;
  npz.Add("z", {n, d}, values);
  const std::string path = folder + "/odd data\n.npz";
  EXPECT_TRUE(npz.Write(path).ok());
  return path;
}

std::string Analyzed(const std::string& path, const std::string& flags) {
  const Outcome run = RunMergeplan("analyze '" + path + "' " + flags);
  EXPECT_EQ(run.code, 0) << run.err;
  return run.out;
}

TEST(AnalyzeOdd, TwoSamplesAreNotSureOfTheirDeviation) {
  const std::string data = MakeSamples(TestFolder(), 2, 4);
  EXPECT_THAT(Analyzed(data, "--per-channel"), Not(HasSubstr("+- 0 ")));
  const json found = json::parse(Analyzed(data, "--json"));
  EXPECT_GT(found["scaling"]["scaling_factor_error"],
            0.05 * found["scaling"]["scaling_factor"].get<double>());
  EXPECT_THAT(RunMergeplan("analyze '" + MakeSamples(TestFolder(), 1, 4) + "'").err,
              HasSubstr("holds 1 sample; a variance needs at least 2 samples"));
}

TEST(AnalyzeOdd, OneDimension) {
  const std::string data = MakeSamples(TestFolder(), 2, 1);
  EXPECT_THAT(
      Analyzed(data, "--directions 5"),
      ::testing::AllOf(HasSubstr("2 samples of 1 value;"), HasSubstr("few for 1 dimension:"),
                       HasSubstr("1 leading principal direction carries 100 %")));
}

TEST(AnalyzeOdd, DirectionsWithoutVarianceHaveNoErrorToSpeakOf) {
  const json found =
      json::parse(Analyzed(MakeSamples(TestFolder(), 2, 4), "--directions 3 --json"));
  EXPECT_LT(found["leading"]["variances"][2], 1e-12);
  EXPECT_THAT(Analyzed(MakeSamples(TestFolder(), 2, 4), "--directions 3"),
              ::testing::ContainsRegex("eigenvalues lie within [0-9.]+(e-[0-9]+)? % of each"));
}

TEST(AnalyzeOdd, MeansFarFromZeroKeepTheirDigits) {
  EXPECT_THAT(Analyzed(MakeSamples(TestFolder(), 1000, 3, 1e6), "--no-gaussianity"),
              ::testing::ContainsRegex("shift_factor (1000000|999999)\\.[0-9]+ \\+- 0\\.0"));
}

TEST(AnalyzeOdd, NothingInATar) {
  const std::string tar = TestFolder() + "/empty.tar";
  ASSERT_TRUE(WriteFileAtomically(tar, std::string(10240, '\0')).ok());
  const Outcome run = RunMergeplan("analyze '" + tar + "'");
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("as a .tar without members does, expected members in PNG"));
}

}  // namespace
}  // namespace mergeplan
