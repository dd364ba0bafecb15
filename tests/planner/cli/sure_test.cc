// How sure a recommendation is: plan --sensitivity, and the sentence of plan and analyze.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "absl/strings/str_cat.h"
#include "planner/data/npz.h"
#include "tests/planner/cli/command_line.h"

namespace mergeplan {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// 300 samples with the given standard deviations.
std::string MakeSamples(const std::string& folder, const std::vector<double>& deviations) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  std::vector<double> values;
  for (int k = 0; k < 300; ++k) {
    for (const double deviation : deviations) values.push_back(deviation * normal(random));
  }
  NpzWriter npz;
  npz.Add("x", {300, static_cast<std::int64_t>(deviations.size())}, values);
  const std::string path = folder + "/samples.npz";
  EXPECT_TRUE(npz.Write(path).ok());
  return path;
}

TEST(Sensitivity, OfVariancesWithARelativeError) {
  const std::string problem =
      "plan --variances 0.4,0.6,1.3,2.4 -T 16 --schedule cosine -s 1.6 --sensitivity "
      "--relative-error 0.3 --draws 50 --json";
  const Outcome run = RunMergeplan(problem + " --seed 4");
  ASSERT_EQ(run.code, 0) << run.err;
  const json s = json::parse(run.out)["sensitivity"];
  EXPECT_EQ(s["draws"], 50);
  EXPECT_EQ(s["seed"], 4);
  EXPECT_EQ(s["confidence"], 0.95);
  EXPECT_EQ(s["replans"], 8);
  EXPECT_LE(s["not_beaten"]["low"], s["not_beaten"]["share"]);
  EXPECT_LE(s["lead"]["p5"], s["lead"]["p95"]);
  EXPECT_LE(s["regret"]["median"], s["regret"]["largest"]);
  EXPECT_LE(s["regret"]["largest"], s["regret"]["largest_possible"]);
  double sum = 0, strategies = 0;
  for (const json& candidate : s["candidates"]) sum += candidate["best"]["share"].get<double>();
  EXPECT_NEAR(sum, 1, 1e-12);
  for (const auto& [name, share] : s["best_strategy"].items())
    strategies += share["share"].get<double>();
  EXPECT_EQ(s["best_strategy"].size(), 4U);
  EXPECT_NEAR(strategies, 1, 1e-12);
  // The same again, whatever the threads; others with another seed.
  const auto again = [&](const std::string& flags) {
    return json::parse(RunMergeplan(problem + flags).out)["sensitivity"];
  };
  EXPECT_EQ(again(" --seed 4 --threads 2"), s);
  EXPECT_NE(again(" --seed 5"), s);
}

TEST(Sensitivity, WhatIsMissingOrWithoutEffectIsNamed) {
  const std::string problem = "plan --variances 0.4,2 -T 8 --schedule cosine -s 1 ";
  const std::pair<const char*, const char*> cases[] = {
      {"--sensitivity", "--variances has no confidence intervals; give --relative-error"},
      {"--draws 5", "--draws: has no effect without --sensitivity"},
      {"--seed 5", "--seed: has no effect without --sensitivity"},
      {"--relative-error 0.1", "--relative-error: has no effect without --sensitivity"},
      {"--sensitivity --relative-error 0", "--relative-error: \"0\" is out of range"},
      {"--sensitivity --relative-error 0.1 --draws 0", "--draws: is 0"},
      {"--sensitivity --relative-error 1e308", "--relative-error: interval 2 is"},
  };
  for (const auto& [flags, says] : cases) {
    const Outcome run = RunMergeplan(problem + flags);
    EXPECT_EQ(run.code, 2) << flags;
    EXPECT_THAT(run.err, HasSubstr(says)) << flags;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }
}

// A plan under limits is compared with what the limits allow, and that is said.
TEST(Sensitivity, OfAPlanUnderLimitsNamesTheStrategiesItIsNotComparedWith) {
  const std::string problem =
      "plan --variances 0.1,0.5 -T 16 --schedule cosine -s 1.6 --sensitivity --relative-error 0.1 "
      "--draws 20 ";
  const Outcome limited = RunMergeplan(problem + "--max-rounds 3");
  ASSERT_EQ(limited.code, 0) << limited.err;
  EXPECT_THAT(limited.out, AllOf(HasSubstr("no other strategy beats the plan in 100 % of 20 draws"),
                                 HasSubstr("exclude them: progressive, boot, consistency)")));
  const Outcome alone = RunMergeplan(problem + "--max-merges 1");
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_THAT(alone.out, HasSubstr("there is no other strategy within the limits"));
  const json s = json::parse(RunMergeplan(problem + "--max-rounds 3 --json").out)["sensitivity"];
  EXPECT_EQ(s["strategies_not_allowed"], (json{"progressive", "boot", "consistency"}));
  EXPECT_EQ(s["best_strategy"].size(), 1U);
  EXPECT_THAT(RunMergeplan(problem).out, Not(HasSubstr("limits on merges")));
}

TEST(HowSure, IsSaidWhereVariancesAreEstimatesOfData) {
  const std::string folder = TestFolder();
  const std::string data = MakeSamples(folder, {0.4, 0.7, 1.3, 1.8});
  const std::string spectrum = folder + "/s.toml";
  const std::string training = " -T 16 --schedule cosine -s 1.6";
  const Outcome analyze =
      RunMergeplan("analyze '" + data + "' --basis diagonal" + training + " -o '" + spectrum + "'");
  ASSERT_EQ(analyze.code, 0) << analyze.err;
  EXPECT_THAT(analyze.out,
              AllOf(HasSubstr("how sure: no other strategy beats"), HasSubstr("for networks: "),
                    HasSubstr("variances are at most 1 (each by itself best by boot)")));
  const Outcome plan = RunMergeplan("plan '" + spectrum + "'" + training);
  ASSERT_EQ(plan.code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("how sure: no other strategy beats the plan in"));
  // In JSON too, and from the data themselves.
  const json from_data =
      json::parse(RunMergeplan("plan '" + data + "' --basis diagonal" + training + " --json").out);
  const json from_file =
      json::parse(RunMergeplan("plan '" + spectrum + "'" + training + " --json").out);
  EXPECT_EQ(from_data["sensitivity"], from_file["sensitivity"]);
  EXPECT_EQ(from_file["sensitivity"]["replans"], 0);
  const json advice = json::parse(
      RunMergeplan("analyze '" + data + "' --basis diagonal" + training + " --json").out);
  for (const char* key : {"how_sure", "sensitivity", "network_advice", "proven"})
    EXPECT_TRUE(advice.contains(key)) << key;
  // Not of variances that were given.
  EXPECT_THAT(RunMergeplan("plan --variances 0.5,2" + training).out, Not(HasSubstr("how sure")));
  // A spectrum's own intervals are wider than none: asked in full, plans are made anew.
  const json full = json::parse(
      RunMergeplan("plan '" + spectrum + "'" + training + " --sensitivity --draws 30 --json").out);
  EXPECT_EQ(full["sensitivity"]["draws"], 30);
  EXPECT_GT(full["sensitivity"]["replans"], 0);
}

TEST(Advice, IsProvenWhereATheoremHoldsAndNeverForANetworkFromAChildPlan) {
  const std::string folder = TestFolder();
  const std::string data = MakeSamples(folder, {0.3, 2.5});
  const std::string start = "analyze '" + data + "' -T 16 --schedule cosine -s 1.6 --json";
  const auto advice = [&](const std::string& flags) {
    return json::parse(RunMergeplan(start + flags).out);
  };
  const json child = advice("");
  EXPECT_FALSE(child["proven"]);
  EXPECT_THAT(child["network_advice"].get<std::string>(),
              AllOf(HasSubstr("does not start as child"), HasSubstr("--init child-jump")));
  const json child_jump = advice(" --init child-jump");
  EXPECT_TRUE(child_jump["proven"]);
  EXPECT_EQ(child_jump["recommended_strategy"], "boot");
  EXPECT_THAT(child_jump["reason"].get<std::string>(), HasSubstr("theorem 1"));
  const json jump = advice(" --init jump");
  EXPECT_EQ(jump["recommended_strategy"], "vanilla");
  EXPECT_THAT(jump["reason"].get<std::string>(), HasSubstr("theorem 4"));
  EXPECT_THAT(jump["network_advice"].get<std::string>(), HasSubstr("measure before deciding"));
  // Of several blocks the borders stay open.
  EXPECT_THAT(advice(" --init jump -N 4")["reason"].get<std::string>(),
              HasSubstr("every block is best merged by vanilla"));
}

}  // namespace
}  // namespace mergeplan
