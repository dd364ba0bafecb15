// One total of training that the merges of a plan share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/base/file.h"
#include "tests/planner/cli/command_line.h"

namespace mergeplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(SharedTotal, SharesAddUpAndBeatEqualOnes) {
  const Outcome run = RunMergeplan(
      "plan --variances 0.95,1.05 -T 32 --schedule cosine -s 198 --shared --gap 0.01 --json");
  ASSERT_EQ(run.code, 0) << run.err;
  const json answer = json::parse(run.out);
  double sum = 0, time = 0;
  for (const json& merge : answer["merges"]) {
    sum += merge["share"].get<double>();
    time += merge["time"].get<double>();
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_NEAR(time, 198, 1e-6);
  EXPECT_LT(answer["objective"], answer["vanilla_objective"]);
  EXPECT_LE(answer["objective"], answer["equal_shares_objective"]);
  EXPECT_LE(answer["lower_bound"], answer["objective"]);
  EXPECT_EQ(answer["status"], "within_gap");
}

TEST(SharedTotal, UpdatesAreWholeAndVanillaIsProvenBest) {
  const std::string file = TestFolder() + "/shared plan.json";
  const Outcome run = RunMergeplan(
      "plan --variances 0.5,3 -T 16 --schedule cosine --lr 0.01 --iterations 500 --shared --json "
      "-o '" +
      file + "'");
  ASSERT_EQ(run.code, 0) << run.err;
  const json answer = json::parse(run.out);
  EXPECT_EQ(answer["status"], "optimal");
  ASSERT_EQ(answer["merges"].size(), 1);
  EXPECT_EQ(answer["merges"][0]["updates"], 500);
  EXPECT_EQ(answer["total_updates"], 500);
  EXPECT_EQ(json::parse(*ReadFile(file)), answer);
}

TEST(SharedTotal, TextNamesTheComparisons) {
  const Outcome run = RunMergeplan("plan --variances 0.5 -T 8 --schedule cosine -s 10 --shared");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("one total that all merges share"));
  EXPECT_THAT(run.out, HasSubstr("vanilla with the whole total"));
  EXPECT_THAT(run.out, HasSubstr("lower bound"));
}

TEST(SharedTotal, WhatDoesNotGoWithIt) {
  const std::string problem = "plan --variances 0.5 --schedule cosine -s 10 --shared ";
  const std::pair<const char*, const char*> faults[] = {
      {"-T 8 -o plan.toml", "expected a .json file"},
      {"-T 8,16", "choose one of them first"},
      {"-T 8 --sensitivity", "has no effect with --shared"}};
  for (const auto& [flags, says] : faults) {
    const Outcome run = RunMergeplan(problem + flags);
    EXPECT_EQ(run.code, 2) << flags;
    EXPECT_THAT(run.err, HasSubstr(says));
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }
}

}  // namespace
}  // namespace mergeplan
