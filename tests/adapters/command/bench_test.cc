// mergeplan bench: strategies side by side under both budgets.
#include "adapters/command/bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "adapters/command/bench_command.h"
#include "planner/base/file.h"
#include "planner/mixture/mixture.h"
#include "planner/mixture/mixture_io.h"
#include "planner/runs/result_file.h"
#include "tests/adapters/command/distill_program.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

TEST(SpreadOf, MeanDeviationAndInterval) {
  EXPECT_EQ(SpreadOf({3}).mean, 3);
  EXPECT_EQ(SpreadOf({3}).half_width, 0);
  const Spread two = SpreadOf({1, 3});
  EXPECT_DOUBLE_EQ(two.mean, 2);
  EXPECT_DOUBLE_EQ(two.deviation, std::sqrt(2.0));
  EXPECT_NEAR(two.half_width, 12.7062, 1e-4);  // t(0.975, 1) * 1
  // 41 values: t(0.975, 40) = 2.02108.
  std::vector<double> many(41, 0.0);
  many.front() = 1;
  many.back() = -1;
  const Spread spread = SpreadOf(many);
  EXPECT_NEAR(spread.half_width / (spread.deviation / std::sqrt(41.0)), 2.02108, 1e-4);
}

class Bench : public Distill {
 protected:
  std::vector<std::string> Question(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> a = {"bench", "--teacher",  Teacher(), "--teacher-steps",
                                  "6",     "--lr",       "0.05",    "--iterations",
                                  "40",    "--schedule", "cosine",  "--quiet"};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }
  Json Rows(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = Question(more);
    arguments.push_back("--json");
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out)["rows"];
  }
};

// The rows are what distill says of the same strategy with the same seed.
TEST_F(Bench, OneTrialIsOneRunOfDistill) {
  const Json rows = Rows({"--strategies", "vanilla,progressive:factor=3", "--trials", "1",
                          "--budget", "per-merge", "--seed", "7"});
  ASSERT_EQ(rows.size(), 2u);
  ASSERT_EQ(Run(Small("progressive", "run", {"--set", "factor=3", "--seed", "7"})).code, 0);
  const auto result = ReadRunResult(File("run"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(rows[1]["achieved_error"]["mean"], result->summary.achieved);
  EXPECT_EQ(rows[1]["achieved_teacher"]["mean"], result->achieved_teacher);
  EXPECT_EQ(rows[1]["predicted_error"], result->summary.predicted);
  EXPECT_EQ(rows[1]["teacher_calls"], result->summary.teacher_calls);
  EXPECT_EQ(rows[1]["updates"], result->summary.updates);
  EXPECT_FALSE(rows[1]["achieved_error"].contains("interval_95"));
}

TEST_F(Bench, TrialsSpreadAroundTheExpectedError) {
  const Json rows =
      Rows({"--strategies", "boot,consistency", "--trials", "40", "--budget", "per-merge"});
  ASSERT_EQ(rows.size(), 2u);
  for (const Json& row : rows) {
    const double mean = row["achieved_error"]["mean"];
    const double deviation = row["achieved_error"]["standard_deviation"];
    // Five standard errors: a chance of one in a million for a right figure.
    EXPECT_NEAR(mean, row["expected_error"].get<double>(), 5 * deviation / std::sqrt(40.0))
        << row["strategy"];
    EXPECT_GT(deviation, 0);
    EXPECT_GT(row["expected_error"], row["predicted_error"]);  // noise only adds
  }
}

// In all, every strategy makes as many updates as BOOT.
TEST_F(Bench, TotalBudgetIsShared) {
  const Json rows = Rows({"--strategies", "vanilla,progressive:factor=3,boot", "--trials", "1"});
  ASSERT_EQ(rows.size(), 6u);
  std::map<std::string, int> per_merge, total;
  for (const Json& row : rows) {
    (row["budget"] == "total" ? total : per_merge)[row["strategy"]] = row["updates_per_merge"];
  }
  EXPECT_EQ(per_merge, (std::map<std::string, int>{
                           {"boot", 40}, {"progressive:factor=3", 40}, {"vanilla", 40}}));
  EXPECT_EQ(total, (std::map<std::string, int>{
                       {"boot", 40}, {"progressive:factor=3", 67}, {"vanilla", 200}}));
  EXPECT_LT(rows[3]["achieved_error"]["mean"], rows[0]["achieved_error"]["mean"]);
}

TEST_F(Bench, AllStandsForWhatCanPlanByItself) {
  std::vector<std::string> names;
  for (const Json& row : Rows({"--trials", "1", "--budget", "total"})) {
    EXPECT_FALSE(row.contains("error")) << row;
    names.push_back(row["strategy"]);
  }
  EXPECT_THAT(names, ::testing::IsSupersetOf(
                         {"boot", "consistency", "dp_custom", "progressive", "vanilla"}));
  EXPECT_THAT(names, Not(::testing::Contains("manual")));
}

TEST_F(Bench, WritesTables) {
  const Outcome text = Run(Question({"--strategies", "boot", "-o", File("b.csv")}));
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("same number of updates for every merge"),
                              HasSubstr("same number of updates in all"), HasSubstr("+-")));
  const std::string csv = ReadFile(File("b.csv")).value_or("");
  EXPECT_THAT(csv, AllOf(HasSubstr("strategy,budget,merges"), HasSubstr("\nboot,per-merge,5,5,40,"),
                         HasSubstr("\nboot,total,5,5,40,")));
  ASSERT_EQ(Run(Question({"--strategies", "boot", "-o", File("b.json")})).code, 0);
  EXPECT_EQ(Json::parse(ReadFile(File("b.json")).value_or(""))["rows"].size(), 2u);
}

TEST_F(Bench, PlanFilesOfTheSameQuestionTakePart) {
  ASSERT_EQ(Run(Small("boot", "run")).code, 0);
  const std::string plan = File("run") + "/plan.toml";
  const Json rows = Rows({"--strategies", "boot," + plan, "--trials", "1", "--budget", "total"});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["achieved_error"], rows[1]["achieved_error"]);
  std::vector<std::string> other = Question({"--strategies", "boot," + plan});
  other[6] = "0.04";
  const Outcome outcome = Run(other);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr(plan), HasSubstr("--lr 0.04"), HasSubstr("was made for 0.05")));
}

// What a plan file fixes is not silently taken in place of what is asked, and no training ends at a
// folder that is not there.
TEST_F(Bench, ContradictionsAreFoundBeforeTraining) {
  ASSERT_EQ(Run(Small("boot", "run")).code, 0);
  const std::string plan = File("run") + "/plan.toml";
  for (const auto& [option, value] : std::vector<std::pair<std::string, std::string>>{
           {"--init", "jump"}, {"--student-steps", "2"}, {"--reference", "teacher"}}) {
    const Outcome outcome = Run(Question({"--strategies", plan, option, value}));
    EXPECT_EQ(outcome.code, 2) << option;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(option), HasSubstr(plan)));
  }
  // Alone, without the options that it fixes, it is the question.
  const Outcome alone =
      Run({"bench", "--teacher", Teacher(), "--strategies", plan, "--trials", "1", "--quiet"});
  EXPECT_EQ(alone.code, 0) << alone.err;
  const Outcome nowhere = Run(Question({"--strategies", "boot", "-o", File("no/b.csv")}));
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_THAT(nowhere.err, AllOf(HasSubstr("no/b.csv"), HasSubstr("cannot be written")));
  EXPECT_EQ(nowhere.out, "");
}

// Where the linear model predicts nothing of a training, nothing is claimed.
TEST_F(Bench, NoPredictionWhereThereIsNone) {
  for (const std::vector<std::string>& recipe :
       {std::vector<std::string>{"--optimizer", "adam"}, {"--draws", "fixed"}}) {
    std::vector<std::string> more = {"--strategies", "boot", "--trials", "1", "--budget", "total"};
    more.insert(more.end(), recipe.begin(), recipe.end());
    const Outcome outcome = Run(Question(more));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr(recipe[1]), Not(HasSubstr("; expected:"))));
  }
  const Json rows = Rows({"--strategies", "boot", "--trials", "2", "--draws", "chi2"});
  EXPECT_GT(rows[0]["expected_error"], rows[0]["predicted_error"]);
}

// A strategy that fails is a row; the others go on.
TEST_F(Bench, OneFailureDoesNotSpoilTheOthers) {
  ASSERT_TRUE(WriteFileAtomically(File("broken.toml"), "format = 1\n").ok());
  const Outcome outcome =
      Run(Question({"--strategies", "vanilla," + File("broken.toml"), "--trials", "1"}));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("broken.toml"), HasSubstr("failed: "), HasSubstr("vanilla")));
}

// Students of a mixture: small nets, few updates.
class MixtureBench : public Bench {
 protected:
  void SetUp() override {
    const auto circle = CircleMixture(3, 2.0, 0.3);
    ASSERT_TRUE(circle.ok()) << circle.status();
    ASSERT_TRUE(WriteMixture(*circle, File("mixture.toml")).ok());
  }
  std::vector<std::string> Modes(const std::vector<std::string>& more) const {
    std::vector<std::string> a = {"bench",
                                  "--teacher",
                                  "mixture:" + File("mixture.toml"),
                                  "--teacher-steps",
                                  "4",
                                  "--schedule",
                                  "cosine",
                                  "--iterations",
                                  "60",
                                  "--fit-iterations",
                                  "200",
                                  "--batch",
                                  "256",
                                  "--hidden",
                                  "16",
                                  "--experts",
                                  "3",
                                  "--quiet"};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }
};

TEST_F(MixtureBench, TrainsUnderBothBudgets) {
  const Outcome outcome =
      Run(Modes({"--strategies", "vanilla,boot", "--trials", "2", "--lr", "0.01", "--json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["reference"], "teacher");
  EXPECT_EQ(json["batch"], 256);
  EXPECT_THAT(json["training"].get<std::string>(), HasSubstr("affine mixtures of 3 experts"));
  ASSERT_EQ(json["rows"].size(), 4u);
  for (const Json& row : json["rows"]) {
    EXPECT_FALSE(row.contains("expected_error"));
    EXPECT_FALSE(row.contains("achieved_surrogate"));
    EXPECT_GT(row["achieved_error"]["mean"], 0);
    EXPECT_GT(row["achieved_error"]["standard_deviation"], 0);
  }
  EXPECT_EQ(json["rows"][2]["updates_per_merge"], 180);  // vanilla, with what BOOT spends
  EXPECT_LT(json["rows"][2]["achieved_error"]["mean"], json["rows"][0]["achieved_error"]["mean"]);
  // BOOT trains the same under both, from the same fits and seeds.
  EXPECT_EQ(json["rows"][3]["achieved_error"], json["rows"][1]["achieved_error"]);
  // One step of the teacher per child that is a step: 4 for every plan of 4 steps.
  EXPECT_EQ(json["rows"][0]["teacher_calls"], 4 * 60 * 256);
}

// One step, nothing to merge: the answer is the fitted student, not the teacher itself.
TEST_F(MixtureBench, OneStepIsTheFit) {
  std::vector<std::string> one = Modes({"--strategies", "vanilla", "--trials", "1", "--json"});
  one[4] = "1";
  const Outcome outcome = Run(one);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json rows = Json::parse(outcome.out)["rows"];
  EXPECT_EQ(rows[0]["merges"], 0);
  EXPECT_GT(rows[0]["achieved_error"]["mean"], 0);
  EXPECT_LT(rows[0]["achieved_error"]["mean"], 0.1);
}

TEST_F(MixtureBench, TellsWhatItCannotDo) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--reference", "surrogate"}, "only the teacher can be the reference"},
      {{"--device", "gpu"}, "--device 'gpu': expected cpu, cuda or cuda:N"},
      {{"--basis", "pca"}, "--basis: means nothing for a mixture"},
      {{"--train-time", "0"}, "--train-time"},
      {{"--experts", "0"}, "--experts"},
      {{"--student-steps", "5"}, "expected 1..4"},
      {{"--strategies", "nope"}, "--strategies: plugin nope: not found"},
      {{"--init", "none"}, "none"},
      {{"--momentum", "0.9"}, "--momentum: the students of a mixture have no such option"},
      {{"--optimizer", "adamw"}, "--optimizer adamw: expected adam or sgd"},
      {{"--draws", "chi2"}, "--draws chi2: expected samples or pool"},
      {{"--iterations", "0"}, "--iterations"},
  };
  for (const auto& [more, message] : cases) {
    const Outcome outcome = Run(Modes(more));
    EXPECT_EQ(outcome.code, 2) << message;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("mergeplan bench: "), HasSubstr(message)));
  }
  if (!std::filesystem::exists("/dev/nvidia0")) {
    const Outcome none = Run(Modes({"--device", "cuda"}));
    EXPECT_EQ(none.code, 1);
    EXPECT_THAT(none.err, AllOf(HasSubstr("--device 'cuda'"), HasSubstr("--device cpu")));
    EXPECT_EQ(none.out, "");
  }
  std::vector<std::string> missing = Modes({});
  missing[2] = "mixture:" + File("none.toml");
  const Outcome outcome = Run(missing);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("none.toml"));
}

TEST_F(Bench, WrongOptionsAreMisuse) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--strategies", "nope"}, "--strategies: plugin nope: not found"},
      {{"--strategies", "boot,boot"}, "boot stands there twice"},
      {{"--strategies", ""}, "holds an empty name"},
      {{"--strategies", "progressive:factor=1"}, "expected an integer from 2"},
      {{"--strategies", "progressive:fctor=2"}, "unknown parameter \"fctor\""},
      {{"--budget", "half"}, "expected per-merge, total or both"},
      {{"--trials", "0"}, "--trials"},
      {{"-o", "table.txt"}, "expected a name that ends in .csv or .json"},
      {{"-o", ""}, "-o: is empty"},
      {{"--experts", "5"}, "--experts: is of the students of a mixture"},
  };
  for (const auto& [more, message] : cases) {
    const Outcome outcome = Run(Question(more));
    EXPECT_EQ(outcome.code, 2) << message;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("mergeplan bench: "), HasSubstr(message)));
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_THAT(Run({"bench"}).err, HasSubstr("--teacher: missing"));
}

}  // namespace
}  // namespace mergeplan
