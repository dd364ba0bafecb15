#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "planner/data/npz.h"
#include "planner/spectrum/spectrum.h"
#include "tests/planner/cli/command_line.h"

namespace mergeplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// 2,000 samples of three dimensions, two of them correlated.
std::string MakeSamples(const std::string& folder, bool with_nan = false) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  std::vector<double> values;
  for (int k = 0; k < 2000; ++k) {
    const double x = normal(random), y = normal(random), z = normal(random);
    values.insert(values.end(), {2 * x, 2 * x + 0.3 * y, 0.5 * z + 7});
  }
  if (with_nan) values[3 * 10] = std::nan("");
  NpzWriter npz;
  npz.Add("latents", {2000, 3}, values);
  npz.Add("labels", {1}, {0});
  const std::string path = folder + "/samples.npz";
  EXPECT_TRUE(npz.Write(path).ok());
  return path;
}

TEST(AnalyzeCommand, WritesASpectrumThatPlanTakes) {
  const std::string folder = TestFolder();
  const std::string data = MakeSamples(folder);
  const std::string spectrum = folder + "/spectrum.toml";
  const Outcome run = RunMergeplan("analyze '" + data + "' --array latents -o '" + spectrum +
                                   "' -T 16 --schedule cosine --train-time 1.6 --json");
  ASSERT_EQ(run.code, 0) << run.err;
  const json result = json::parse(run.out);
  EXPECT_EQ(result["samples"], 2000);
  EXPECT_EQ(result["dimensions"], 3);
  EXPECT_EQ(result["scale"], "none");
  EXPECT_EQ(result["basis"], "pca");
  EXPECT_EQ(result["bases"]["pca"]["regime"], "mixed");
  EXPECT_GT(result["bases"]["diagonal"]["off_diagonal_energy"], 0.3);
  EXPECT_LT(result["bases"]["pca"]["off_diagonal_energy"], 1e-9);
  EXPECT_NEAR(result["variances"][0], 8, 1);
  EXPECT_NEAR(result["mean"][2], 7, 0.1);
  EXPECT_TRUE(result.contains("recommended_strategy"));
  EXPECT_EQ(result["scalar_regimes"].size(), 3u);

  const absl::StatusOr<Spectrum> read = ReadSpectrum(spectrum);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->samples, 2000);

  const std::string training = " -T 16 --schedule cosine --train-time 1.6 --json";
  const json from_file = json::parse(RunMergeplan("plan '" + spectrum + "'" + training).out);
  const json from_data =
      json::parse(RunMergeplan("plan '" + data + "' --array latents" + training).out);
  EXPECT_EQ(from_file["objective"], from_data["objective"]);
  EXPECT_EQ(from_file["basis"], "pca");
}

TEST(AnalyzeCommand, AdviceFollowsTheTheoremsWhereTheyHold) {
  const std::string folder = TestFolder();
  std::mt19937_64 random(6);
  std::normal_distribution<double> normal;
  std::vector<double> low, high;
  for (int k = 0; k < 4000; ++k) {
    low.push_back(0.5 * normal(random));
    high.push_back(4 * normal(random));
  }
  NpzWriter npz;
  npz.Add("low", {2000, 2}, low);
  npz.Add("high", {2000, 2}, high);
  ASSERT_TRUE(npz.Write(folder + "/x.npz").ok());
  const std::string rest = " -T 16 --schedule cosine --train-time 1.6 --json";
  const json low_result =
      json::parse(RunMergeplan("analyze '" + folder + "/x.npz' --array low" + rest).out);
  EXPECT_EQ(low_result["recommended_strategy"], "boot");
  EXPECT_THAT(low_result["reason"].get<std::string>(), HasSubstr("theorem 2"));
  const json high_result =
      json::parse(RunMergeplan("analyze '" + folder + "/x.npz' --array high" + rest).out);
  EXPECT_EQ(high_result["recommended_strategy"], "vanilla");
}

// An offset that float32 could not tell the samples apart by.
TEST(AnalyzeCommand, KeepsTheSpreadOfDataFarFromZero) {
  const std::string folder = TestFolder();
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  std::vector<double> far, counts, plain;
  for (int k = 0; k < 3000; ++k) {
    const double x = normal(random);
    plain.push_back(x);
    far.push_back(1e9 + x);
    counts.push_back(1e9 + k % 5);
  }
  NpzWriter npz;
  npz.Add("plain", {1500, 2}, plain);
  npz.Add("far", {1500, 2}, far);
  npz.Add("counts", {1500, 2}, counts, NpzWriter::Type::kInt64);
  ASSERT_TRUE(npz.Write(folder + "/x.npz").ok());
  const auto variances = [&](const std::string& array) {
    const Outcome run = RunMergeplan("analyze '" + folder + "/x.npz' --array " + array +
                                     " --basis diagonal --json");
    EXPECT_EQ(run.code, 0) << run.err;
    return json::parse(run.out)["variances"].get<std::vector<double>>();
  };
  const std::vector<double> expected = variances("plain");
  for (int k = 0; k < 2; ++k) EXPECT_NEAR(variances("far")[k], expected[k], 1e-6);
  for (double v : variances("counts")) EXPECT_NEAR(v, 2, 0.01);
}

TEST(AnalyzeCommand, NeverOverwritesItsInputNorWritesBesideADevice) {
  const std::string folder = TestFolder();
  const std::string data = MakeSamples(folder);
  const auto before = std::filesystem::file_size(data);
  const Outcome onto_itself =
      RunMergeplan("analyze '" + data + "' --array latents -o '" + folder + "/./samples.npz'");
  EXPECT_EQ(onto_itself.code, 2);
  EXPECT_THAT(onto_itself.err, HasSubstr("would be overwritten"));
  EXPECT_EQ(std::filesystem::file_size(data), before);
  const Outcome arrays =
      RunMergeplan("analyze '" + data + "' --array latents -o '" + folder + "/samples.toml'");
  EXPECT_EQ(arrays.code, 2);
  EXPECT_THAT(arrays.err, HasSubstr("samples.npz"));
  EXPECT_EQ(std::filesystem::file_size(data), before);
  const Outcome device = RunMergeplan("analyze '" + data + "' --array latents -o /dev/null");
  EXPECT_EQ(device.code, 2);
  EXPECT_FALSE(std::filesystem::exists("/dev/null.npz"));

  // Nor other people's arrays: those of a spectrum, and what happens to have the name of its own.
  const std::string spectrum = folder + "/spectrum.toml";
  const std::string write = "analyze '" + data + "' --array latents -o '" + spectrum + "'";
  ASSERT_EQ(RunMergeplan(write).code, 0);
  ASSERT_EQ(RunMergeplan(write).code, 0);  // again
  const std::string training = "' -T 4 --schedule cosine -s 1 -o '" + folder + "/spectrum.npz'";
  const Outcome onto_arrays = RunMergeplan("plan '" + spectrum + training);
  EXPECT_EQ(onto_arrays.code, 2);
  EXPECT_THAT(onto_arrays.err, HasSubstr("that ending is for arrays"));
  EXPECT_TRUE(ReadSpectrum(spectrum).ok());
  std::filesystem::remove(spectrum);
  const Outcome foreign = RunMergeplan(write);
  EXPECT_EQ(foreign.code, 2);
  EXPECT_THAT(foreign.err, HasSubstr("its arrays would overwrite " + folder + "/spectrum.npz"));

  const std::string plan = folder + "/plan.toml";
  ASSERT_EQ(
      RunMergeplan("plan --variances 0.5,2 -T 4 --schedule cosine -s 1 -o '" + plan + "'").code, 0);
  EXPECT_EQ(RunMergeplan("show '" + plan + "' --svg '" + plan + "'").code, 2);
  EXPECT_EQ(RunMergeplan("show '" + plan + "' --svg '" + folder + "/plan-1.npz'").code, 2);
  EXPECT_EQ(RunMergeplan("show '" + plan + "'").code, 0);
}

TEST(AnalyzeCommand, NotFiniteSamplesAreNamedOrLeftOut) {
  const std::string folder = TestFolder();
  const std::string data = MakeSamples(folder, true);
  const Outcome refused = RunMergeplan("analyze '" + data + "' --array latents");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("--skip-nonfinite"));
  const Outcome run =
      RunMergeplan("analyze '" + data + "' --array latents --skip-nonfinite --json");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(json::parse(run.out)["samples"], 1999);
  EXPECT_EQ(json::parse(run.out)["skipped"], 1);
}

TEST(AnalyzeCommand, AFolderThatIsNotThereIsNoticedBeforeTheWork) {
  const std::string folder = TestFolder();
  const Outcome run = RunMergeplan("analyze '" + MakeSamples(folder) + "' --array latents -o '" +
                                   folder + "/no/s.toml'");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr(folder + "/no"));
}

TEST(AnalyzeCommand, FashionMnistHasNoPixelAboveOneButTwoDozenDirections) {
  const char* path = "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz";
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << "not there: " << path << " (package dataset-fashion-mnist)";
  const Outcome run = RunMergeplan(std::string("analyze ") + path + " --json");
  ASSERT_EQ(run.code, 0) << run.err;
  const json result = json::parse(run.out);
  EXPECT_EQ(result["samples"], 60000);
  EXPECT_EQ(result["shape"], json({28, 28}));
  EXPECT_EQ(result["scale"], "-1:1");
  EXPECT_EQ(result["bases"]["diagonal"]["regime"], "low");
  EXPECT_EQ(result["bases"]["diagonal"]["fraction_above_one"], 0.0);
  EXPECT_NEAR(result["bases"]["pca"]["fraction_above_one"].get<double>() * 784, 24, 0.01);
  EXPECT_NEAR(result["bases"]["pca"]["variances"][0], 79.24, 0.01);
}

}  // namespace
}  // namespace mergeplan
