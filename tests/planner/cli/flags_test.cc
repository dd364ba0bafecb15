// Flags that are out of range, empty, or without effect beside another one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/plan/io/document.h"
#include "planner/spectrum/spectrum.h"
#include "tests/planner/cli/command_line.h"

namespace mergeplan {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kProblem[] = "plan --variances 1,2 -T 4 --schedule cosine ";

void ExpectMisuse(const std::string& arguments, const std::string& says) {
  const Outcome run = RunMergeplan(arguments);
  EXPECT_EQ(run.code, 2) << arguments << ": " << run.err;
  EXPECT_THAT(run.err, HasSubstr(says)) << arguments;
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  EXPECT_EQ(run.out, "") << arguments;
}

void MakeData(const std::string& path) {
  NpzWriter npz;
  npz.Add("x", {4, 2}, {1, 2, -1, 1, 0.5, -2, 2, 0});
  ASSERT_TRUE(npz.Write(path).ok());
}

TEST(Flags, ANumberOutOfRangeIsNamedWithTheRange) {
  const std::pair<const char*, const char*> cases[] = {
      {"-s 0", "--train-time: \"0\" is out of range, expected a positive, finite number"},
      {"-s 1e999", "--train-time: \"1e999\" is out of range"},
      {"-s one", "--train-time: \"one\" is no number"},
      {"--lr 0 --iterations 5", "--lr: \"0\" is out of range"},
      {"--lr 0.01 --iterations 0", "--iterations: \"0\" is out of range, expected one from 1 to"},
      {"--lr 0.01 --iterations 5 --batch 0", "--batch: \"0\" is out of range, expected one from 1"},
      {"--lr 0.01 --iterations 5 --batch -1", "--batch: \"-1\" is out of range"},
      {"--lr 0.01 --iterations 5 --feature-norm nan", "--feature-norm: \"nan\" is out of range"},
      {"--lr 0.01 --iterations 5 --feature-norm 0", "--feature-norm: \"0\" is out of range"},
      {"-s 1 --batch 0", "--batch: \"0\" is out of range"},
      {"-s 1 --threads -1", "--threads: \"-1\" is out of range, expected one from 0 to"},
      {"-s 1 -N 0", "--student-steps: \"0\" is out of range"},
      {"-s 1 -N 1.5", "--student-steps: \"1.5\" is no whole number"},
      {"-s 1 --gap nan", "--gap: \"nan\" is out of range"},
      {"-s 1 --time-limit nan", "--time-limit: \"nan\" is out of range"},
  };
  for (const auto& [flags, says] : cases) ExpectMisuse(std::string(kProblem) + flags, says);
  const std::string open = "plan --variances 1 --schedule cosine -s 1 -T ";
  ExpectMisuse(open + "0", "--teacher-steps: \"0\" is out of range");
  ExpectMisuse(
      open + "2147483648",
      "--teacher-steps: \"2147483648\" is out of range, expected one from 1 to 2147483647");
  ExpectMisuse(open + "99999999999999999999",
               "--teacher-steps: \"99999999999999999999\" is out of");
  ExpectMisuse("analyze x.npy --confidence 1", "--confidence: \"1\" is out of range");
  ExpectMisuse("report run -o x.html --threads -2", "--threads: \"-2\" is out of range");
  ExpectMisuse("report run -o x.html --draws -5", "--draws: \"-5\" is out of range");
}

// Said although the data are not there: it needs no look at them.
TEST(Flags, AreJudgedBeforeTheDataAreRead) {
  const std::string training = " -T 4 --schedule cosine -s 1 -N 5";
  ExpectMisuse("analyze none.npy" + training, "--student-steps: is 5, expected 1..4");
  ExpectMisuse("plan none.npy" + training, "--student-steps: is 5, expected 1..4");
  ExpectMisuse("plan none.npy -T 4 --schedule cosine -s 1 --weights 1,x", "--weights: \"x\"");
}

TEST(Flags, AnEmptyValueIsNotTakenForAnOptionThatWasLeftOut) {
  const std::string problem = std::string(kProblem) + "-s 1 ";
  ExpectMisuse(problem + "-o ''", "--output: is empty, expected FILE");
  ExpectMisuse(problem + "--weights ''", "--weights: is empty, expected LIST");
  ExpectMisuse(problem + "--init ''", "--init: is empty");
  ExpectMisuse("plan --variances= -T 4 --schedule cosine -s 1", "--variances=: is empty");
  ExpectMisuse("plan '' -T 4 --schedule cosine -s 1", "INPUT: is empty");
  ExpectMisuse("plan --variances 1 -T 4 --schedule '' -s 1", "--schedule: is empty");
  ExpectMisuse("analyze x.npy --array ''", "--array: is empty, expected NAME");
  ExpectMisuse("analyze x.npy --scale ''", "--scale: is empty");
  ExpectMisuse("show p.toml --svg ''", "--svg: is empty");
  ExpectMisuse("report run '' -o x.html", "RUN: is empty");
  ExpectMisuse("report run -o x.html --plan ''", "--plan: is empty");
}

TEST(Flags, WhatHasNoEffectIsMisuse) {
  const std::string folder = TestFolder();
  MakeData(folder + "/x.npz");
  const std::string data = "'" + folder + "/x.npz'";
  const std::string spectrum = "'" + folder + "/s.toml'";
  ASSERT_EQ(RunMergeplan("analyze " + data + " -o " + spectrum).code, 0);
  const std::string problem = std::string(kProblem) + "-s 1 ";
  ExpectMisuse(problem + "--batch 64", "--batch: has no effect with --train-time");
  ExpectMisuse(problem + "--feature-norm 32", "--feature-norm: has no effect with --train-time");
  ExpectMisuse(problem + "--array x", "--array: has no effect with --variances");
  ExpectMisuse(problem + "--scale none", "--scale: has no effect with --variances");
  ExpectMisuse(problem + "--skip-nonfinite", "--skip-nonfinite: has no effect with --variances");
  ExpectMisuse("compare --variances 1 -T 4 --schedule cosine -s 1 --batch 2",
               "--batch: has no effect with --train-time");
  for (const char* flag : {"--array x", "--scale none", "--skip-nonfinite"}) {
    ExpectMisuse("plan " + spectrum + " -T 4 --schedule cosine -s 1 " + flag,
                 "has no effect with a spectrum.toml");
  }
  for (const char* flag : {"-N 3", "-T 4", "-s 1", "--lr 0.1", "--iterations 3", "--batch 2",
                           "--feature-norm 2", "--init jump", "--reference data"}) {
    ExpectMisuse("analyze " + data + " " + flag, "has no effect without --schedule");
  }
  ExpectMisuse("show p.toml --json --ascii", "--ascii: has no effect with --json");
  // And where they do have one.
  EXPECT_EQ(RunMergeplan("analyze " + data +
                         " -N 2 -T 4 --schedule cosine --lr 0.01 --iterations 5 "
                         "--batch 2 --feature-norm 2")
                .code,
            0);
  EXPECT_EQ(RunMergeplan("plan " + data + " --array x -T 4 --schedule cosine -s 1").code, 0);
}

TEST(Flags, NoWordIsSaidTwice) {
  for (const char* flags : {"plan --variances 1 -T 4 --schedule cosine -s 1 --init x",
                            "analyze x.npy -T 4 --schedule cosine -s 1 --init x"}) {
    ExpectMisuse(flags, ": --init: unknown word \"x\"");
  }
  ExpectMisuse("analyze x.npy -T 4 --schedule cosine -s 1 --reference x",
               ": --reference: unknown word \"x\"");
  const std::string folder = TestFolder();
  const std::string plan = folder + "/p.toml";
  ASSERT_EQ(RunMergeplan(std::string(kProblem) + "-s 1 -o '" + plan + "'").code, 0);
  std::string text = *ReadFile(plan);
  const size_t at = text.find("space = \"nary\"");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 14, "space = \"many\"");
  ASSERT_TRUE(WriteFileAtomically(plan, text).ok());
  const Outcome run = RunMergeplan("show '" + plan + "'");
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("space: unknown word \"many\""));
  EXPECT_THAT(run.err, Not(HasSubstr("space: space:")));
}

TEST(Flags, ASpectrumIsToml) {
  const std::string folder = TestFolder();
  MakeData(folder + "/x.npz");
  for (const char* name : {"s.json", "s", "s.toml.bak"}) {
    ExpectMisuse("analyze '" + folder + "/x.npz' -o '" + folder + "/" + name + "'",
                 "expected a name that ends in .toml");
    EXPECT_FALSE(std::filesystem::exists(folder + "/" + name));
  }
}

// Linux takes any bytes for a name; the files that name it must be readable all the same.
TEST(Flags, NamesThatAreNoUtf8) {
  const std::string folder = TestFolder();
  const std::string data = folder + "/caf\xE9.npz";
  MakeData(data);
  const std::string spectrum = folder + "/s.toml";
  const Outcome analyze = RunMergeplan("analyze '" + data + "' -o '" + spectrum + "'");
  ASSERT_EQ(analyze.code, 0) << analyze.err;
  const absl::StatusOr<Spectrum> read = ReadSpectrum(spectrum);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->source, HasSubstr("caf\xEF\xBF\xBD.npz"));

  const std::string problem = " -T 4 --schedule cosine -s 1 ";
  for (const char* name : {"p.toml", "p.json"}) {
    const std::string plan = folder + "/" + name;
    ASSERT_EQ(RunMergeplan("plan '" + data + "'" + problem + "-o '" + plan + "'").code, 0);
    const absl::StatusOr<PlanDocument> document = ReadPlan(plan);
    ASSERT_TRUE(document.ok()) << document.status();
    EXPECT_THAT(document->input, HasSubstr("caf\xEF\xBF\xBD.npz"));
  }
  const Outcome json = RunMergeplan("analyze '" + data + "' --json");
  EXPECT_FALSE(nlohmann::json::parse(json.out, nullptr, false).is_discarded());

  // Their arrays would carry a name that TOML cannot hold.
  ExpectMisuse("analyze '" + data + "' -o '" + folder + "/s\xE9.toml'", "name is not UTF-8");
  ExpectMisuse("plan '" + data + "'" + problem + "-o '" + folder + "/p\xE9.toml'",
               "name is not UTF-8");
}

TEST(Flags, TheLargestAndTheSmallestNumberOfSteps) {
  for (const char* command : {"plan", "compare"}) {
    const Outcome one = RunMergeplan(std::string(command) +
                                     " --variances 0.5,2 -T 1 --schedule cosine -s 1 --json");
    ASSERT_EQ(one.code, 0) << one.err;
    const nlohmann::json figures = nlohmann::json::parse(one.out);
    EXPECT_EQ(figures["teacher_steps"], 1);
    EXPECT_EQ(figures["strategies"]["boot"]["merges_trained"], 0);
  }
  const std::string problem = " --variances 0.5,2 -T 100000 --schedule cosine -s 1 ";
  EXPECT_EQ(RunMergeplan("compare" + problem).code, 0);
  const std::string path = TestFolder() + "/p.toml";
  const Outcome most = RunMergeplan("plan" + problem + "--time-limit 1 -o '" + path + "'");
  EXPECT_EQ(most.code, 3) << most.err;
  const absl::StatusOr<PlanDocument> plan = ReadPlan(path);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->plan.teacher_steps(), 100000);
  EXPECT_LE(plan->lower_bound, plan->objective);
}

TEST(Flags, AProblemBeyondTheMemoryIsRefusedWithFigures) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer needs more address space than the test allows";
#endif
  const Outcome run = RunMergeplan(
      "plan --variances 1,2,3,4,5,6,7,8,9,10 -T 100000 --schedule cosine -s 1 --time-limit 1",
      "ulimit -v 70000");
  EXPECT_EQ(run.code, 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr("--teacher-steps: 100000 teacher steps in 10 dimensions needs"));
  EXPECT_THAT(run.err, HasSubstr("76 MiB of memory"));
}

}  // namespace
}  // namespace mergeplan
