// Data that says nothing, data that is hostile, and what is said about both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "tests/planner/cli/command_line.h"

namespace mergeplan {
namespace {

using nlohmann::json;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

std::string Write(const std::string& folder, const std::string& name,
                  const std::vector<std::int64_t>& shape, const std::vector<double>& values) {
  NpzWriter npz;
  npz.Add("z", shape, values);
  const std::string path = folder + "/" + name;
  EXPECT_TRUE(npz.Write(path).ok());
  return "'" + path + "'";
}

std::vector<double> Exponential(int count, double unit) {
  std::mt19937_64 random(4);
  std::exponential_distribution<double> draw;
  std::vector<double> out(count);
  for (double& value : out) value = unit * draw(random);
  return out;
}

TEST(AnalyzeFaults, WhatCannotBeTestedIsUntested) {
  const std::string folder = TestFolder();
  for (const auto& [data, why] :
       {std::pair<std::string, std::string>{
            Write(folder, "flat.npz", {50, 4}, std::vector<double>(200, 0.1)), "constant"},
        {Write(folder, "two.npz", {2, 3}, Exponential(6, 1)), "2 samples are too few"},
        {Write(folder, "seven.npz", {7, 3}, Exponential(21, 1)), "7 samples are too few"},
        {Write(folder, "tiny.npz", {500, 2}, Exponential(1000, 1e-200)), "too small"},
        {Write(folder, "small.npz", {500, 2}, Exponential(1000, 1e-100)), "too small"},
        {Write(folder, "large.npz", {500, 2}, Exponential(1000, 1e76)), "too large"}}) {
    const Outcome run = RunMergeplan("analyze " + data + " --json");
    ASSERT_EQ(run.code, 0) << run.err;
    const json result = json::parse(run.out)["gaussianity"];
    EXPECT_EQ(result["verdict"], "untested") << data;
    EXPECT_EQ(result["rejected"], false);
    EXPECT_THAT(result["words"].get<std::string>(), HasSubstr(why));
  }
  // What can, is.
  for (const double unit : {1e-50, 1.0, 1e50}) {
    const Outcome run = RunMergeplan(
        "analyze " + Write(folder, "some.npz", {500, 2}, Exponential(1000, unit)) + " --json");
    EXPECT_EQ(json::parse(run.out)["gaussianity"]["verdict"], "not-gaussian") << unit;
  }
}

TEST(AnalyzeFaults, ConstantDataGetsNoAdviceToShrink) {
  const std::string folder = TestFolder();
  const std::string flat = Write(folder, "flat.npz", {5, 4}, std::vector<double>(20, 0.1));
  EXPECT_THAT(RunMergeplan("analyze " + flat).out, Not(HasSubstr("--shrink")));
  EXPECT_THAT(RunMergeplan("analyze " + Write(folder, "few.npz", {5, 4}, Exponential(20, 1))).out,
              HasSubstr("--shrink"));
}

TEST(AnalyzeFaults, FactorsBeyondFloat64AreRefusedWithThatReason) {
  const std::string folder = TestFolder(),
                    data = Write(folder, "x.npz", {40, 2}, Exponential(80, 1e60));
  for (const auto& [range, says] : {std::pair<std::string, std::string>{"1e-120:1", "float64"},
                                    {"1:1e101", "float64"},
                                    {"1:1e99", "at the factor"},
                                    {"1:nan", "no range"},
                                    {"1:inf", "float64"},
                                    {"-1:1", "no range"}}) {
    const Outcome run =
        RunMergeplan(absl::StrCat("analyze ", data, " --scaling-curve --scaling-range=", range));
    EXPECT_EQ(run.code, 2) << range;
    EXPECT_THAT(run.err, HasSubstr(says));
  }
}

TEST(AnalyzeFaults, FormatsThatCannotBeReadAreNamed) {
  const std::string folder = TestFolder(), path = folder + "/file";
  const auto says = [&](const std::string& bytes) {
    EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
    const Outcome run = RunMergeplan("analyze '" + path + "'");
    EXPECT_EQ(run.code, 1);
    EXPECT_EQ(RunMergeplan("mixture fit '" + path + "'").code, 1);
    return run.err;
  };
  EXPECT_THAT(says(std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15)),
              HasSubstr("before PyTorch 1.6"));
  EXPECT_THAT(says(std::string("\x80\x04\x95\x0b\0\0\0\0\0\0\0]", 12)), HasSubstr("Python pickle"));
  EXPECT_THAT(says(std::string("\x50\0\0\0\0\0\0\0{}", 10)),
              HasSubstr("80 bytes, but has 10 bytes in all"));
}

TEST(AnalyzeFaults, StandardInputIsNamedSo) {
  const std::string folder = TestFolder(), path = folder + "/file";
  ASSERT_TRUE(WriteFileAtomically(path, "no data at all").ok());
  for (const std::string command : {"analyze", "mixture fit"}) {
    // RunMergeplan itself closes stdin.
    const Outcome run = RunMergeplan("--version", "\"${MERGEPLAN_BIN:-mergeplan}\" " + command +
                                                      " - < '" + path + "' 2>'" + folder + "/err'");
    const std::string error = ReadFile(folder + "/err").value_or("");
    EXPECT_THAT(error, HasSubstr(": standard input: starts with 'no data "));
    EXPECT_THAT(error, Not(HasSubstr("/proc")));
  }
}

TEST(MixtureFitFaults, AFarSampleDoesNotHideTheModes) {
  const std::string folder = TestFolder();
  std::mt19937_64 random(6);
  std::normal_distribution<double> normal;
  std::vector<double> values;
  for (int k = 0; k < 600; ++k) values.push_back(normal(random) + (k % 2 == 0 ? 0 : 8));
  const std::string near = Write(folder, "near.npz", {600, 1}, values);
  for (const double far : {1e3, 1e6, -1e9}) {
    values[5] = far;
    const Outcome run = RunMergeplan("mixture fit " + Write(folder, "far.npz", {600, 1}, values) +
                                     " --components 1..5 --json");
    ASSERT_EQ(run.code, 0) << run.err;
    const json result = json::parse(run.out);
    EXPECT_EQ(result["components"], 3) << far;
    EXPECT_NEAR(result["weights"][1], 0.5, 0.05);
    EXPECT_THAT(result["remark"].get<std::string>(), HasSubstr("a single sample"));
  }
  EXPECT_EQ(json::parse(RunMergeplan("mixture fit " + near + " --json").out)["remark"], "");
}

TEST(MixtureFitFaults, FewSamplesEndTheDefaultAndRefuseTheRest) {
  const std::string folder = TestFolder(),
                    data = Write(folder, "five.npz", {5, 2}, Exponential(10, 1));
  const Outcome fits = RunMergeplan("mixture fit " + data + " --json");
  ASSERT_EQ(fits.code, 0) << fits.err;
  EXPECT_EQ(json::parse(fits.out)["fits"].size(), 4u);
  const Outcome asked = RunMergeplan("mixture fit " + data + " --components 1..8");
  EXPECT_EQ(asked.code, 2);
  EXPECT_EQ(asked.out, "");
  EXPECT_THAT(asked.err, HasSubstr("up to 8 are asked for, but there are 5 samples"));
  const Outcome one =
      RunMergeplan("mixture fit " + Write(folder, "1.npz", {1, 2}, Exponential(2, 1)));
  EXPECT_EQ(one.code, 1);
  EXPECT_EQ(one.out, "");
  EXPECT_THAT(
      RunMergeplan("mixture fit " + Write(folder, "t.npz", {50, 2}, Exponential(100, 1e-200))).err,
      HasSubstr("variance is below what float64 can hold"));
  EXPECT_THAT(
      RunMergeplan("mixture fit " + Write(folder, "c.npz", {9, 2}, std::vector<double>(18, 0.1)))
          .err,
      HasSubstr("all samples are alike"));
}

TEST(MixtureFitFaults, SaysWhatItLeftOutAndNotAThousandWeights) {
  const std::string folder = TestFolder();
  std::vector<double> values = Exponential(800, 1);
  values[11] = values[13] = std::nan("");
  const std::string data = Write(folder, "x.npz", {800}, values);
  const Outcome text = RunMergeplan("mixture fit " + data +
                                    " --skip-nonfinite --components 100 --restarts 1 "
                                    "--max-iterations 3");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("2 left out because they are not finite"));
  EXPECT_THAT(text.out, HasSubstr("more down to"));
  std::size_t longest = 0, at = 0;
  for (std::size_t end = text.out.find('\n'); end != std::string::npos;
       at = end + 1, end = text.out.find('\n', at)) {
    longest = std::max(longest, end - at);
  }
  EXPECT_LT(longest, 400u);
  const Outcome as_json =
      RunMergeplan("mixture fit " + data + " --skip-nonfinite --components 2 --json");
  EXPECT_EQ(json::parse(as_json.out)["skipped"], 2);
}

TEST(MixtureFitFaults, AnInterruptEndsWithCode3) {
  const std::string folder = TestFolder(),
                    data = Write(folder, "x.npz", {4000, 4}, Exponential(16000, 1));
  // One component is fitted at once; the signal comes while 2,000 are, which takes far longer.
  const Outcome run = RunMergeplan(
      "--version", absl::StrCat("\"${MERGEPLAN_BIN:-mergeplan}\" mixture fit ", data,
                                " --components 1,2000 --restarts 50 >'", folder, "/out' 2>'",
                                folder, "/err' & p=$!; while ! grep -q components '", folder,
                                "/out'; do sleep 0.05; done; kill -INT $p; wait $p; echo $? > '",
                                folder, "/code'"));
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(ReadFile(folder + "/code").value_or(""), "3\n");
  EXPECT_THAT(ReadFile(folder + "/err").value_or(""), HasSubstr("stopped; nothing was written"));
}

}  // namespace
}  // namespace mergeplan
