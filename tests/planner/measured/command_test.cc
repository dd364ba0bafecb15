#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/measured/tables.h"
#include "tests/planner/cli/command_line.h"
#include "tests/planner/measured/cases.h"

namespace mergeplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class MeasuredCommand : public testing::Test {
 protected:
  MeasuredCommand() : folder_(TestFolder()) {
    std::mt19937_64 random(11);
    CaseKind kind;
    kind.steps = 9;
    tables_ = MakeCase(kind, random).Tables();
    tables_.combine = Combine::kRms;
    for (auto* entries : {&tables_.distance, &tables_.floor, &tables_.gain}) {
      for (MeasuredEntry& e : *entries) {
        e.low = 0.8 * e.value;
        e.high = 1.3 * e.value;
      }
    }
    EXPECT_TRUE(WriteMeasured(tables_, File()).ok());
  }
  ~MeasuredCommand() override { std::filesystem::remove_all(folder_); }

  std::string File() const { return folder_ + "/measured.toml"; }
  std::string Ask(const std::string& more, const char* command = "plan") const {
    return absl::StrCat(command, " --measured '", File(), "' ", more);
  }

  std::string folder_;
  MeasuredTables tables_;
};

TEST_F(MeasuredCommand, PlanSaysEverything) {
  const Outcome run = RunMergeplan(Ask("--updates 4 -N 2 --json"));
  ASSERT_EQ(run.code, 0) << run.err;
  const json plan = json::parse(run.out);
  EXPECT_EQ(plan["model"], "measured");
  EXPECT_EQ(plan["combine"], "rms");  // as the file says
  EXPECT_EQ(plan["teacher_steps"], 9);
  EXPECT_EQ(plan["student_steps"], 2);
  EXPECT_EQ(plan["status"], "optimal");
  EXPECT_EQ(plan["blocks"].size(), 2U);
  EXPECT_EQ(plan["tree"].size(), 2U);
  EXPECT_LT(plan["objective_low"], plan["objective"]);
  EXPECT_LT(plan["objective"], plan["objective_high"]);
  EXPECT_LE(plan["lower_bound"], plan["objective"]);
  for (const char* name : {"vanilla", "progressive", "boot", "consistency"}) {
    EXPECT_GE(plan["strategies"][name]["objective"].get<double>(), plan["objective"].get<double>());
  }
  for (const json& merge : plan["merges"]) EXPECT_EQ(merge["updates"], 4);
  const Outcome sum = RunMergeplan(Ask("--updates 4 -N 2 --combine sum --json"));
  EXPECT_GT(json::parse(sum.out)["objective"], plan["objective"]);
  const Outcome text = RunMergeplan(Ask("--updates 4 --max-children 2 --draws 0"));
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("the strategy breaks the limits"));
  EXPECT_THAT(text.out, HasSubstr("at most 2 children per merge"));
}

TEST_F(MeasuredCommand, TotalUpdatesAreSpent) {
  const Outcome run = RunMergeplan(Ask("--total-updates 21 --json"));
  ASSERT_EQ(run.code, 0) << run.err;
  const json plan = json::parse(run.out);
  int spent = 0;
  for (const json& merge : plan["merges"]) spent += merge["updates"].get<int>();
  EXPECT_EQ(spent, 21);
  const Outcome few = RunMergeplan(Ask("--total-updates 3 --json"));
  EXPECT_EQ(json::parse(few.out)["strategies"]["boot"]["affordable"], false);
  const Outcome two = RunMergeplan(Ask("--total-updates 21 --max-merges 2 --json"));
  EXPECT_LE(json::parse(two.out)["merges_trained"], 2);
  EXPECT_THAT(RunMergeplan(Ask("--total-updates 3")).out, HasSubstr("more merges than updates"));
}

TEST_F(MeasuredCommand, SameSeedSameAnswer) {
  const auto without_seconds = [](const Outcome& run) {
    json plan = json::parse(run.out);
    plan.erase("seconds");
    return plan;
  };
  const json once = without_seconds(RunMergeplan(Ask("--updates 4 --draws 77 --seed 5 --json")));
  EXPECT_EQ(once, without_seconds(RunMergeplan(Ask("--updates 4 --draws 77 --seed 5 --json"))));
  EXPECT_NE(once, without_seconds(RunMergeplan(Ask("--updates 4 --draws 77 --seed 6 --json"))));
  EXPECT_EQ(once["draws"], 77);
}

TEST_F(MeasuredCommand, TheAnswerAsAFile) {
  const std::string path = folder_ + "/answer.json";
  const Outcome run = RunMergeplan(Ask("--updates 4 -o '" + path + "'"));
  ASSERT_EQ(run.code, 0) << run.err;
  const json file = json::parse(*ReadFile(path));
  json printed = json::parse(RunMergeplan(Ask("--updates 4 --json")).out);
  printed["seconds"] = file["seconds"];
  EXPECT_EQ(file, printed);
}

TEST_F(MeasuredCommand, Compare) {
  const Outcome run = RunMergeplan(Ask("--updates 4 --json", "compare"));
  ASSERT_EQ(run.code, 0) << run.err;
  const json table = json::parse(run.out);
  const json plan = json::parse(RunMergeplan(Ask("--updates 4 --json")).out);
  for (const char* name : {"vanilla", "progressive", "boot", "consistency"}) {
    for (const char* key : {"objective", "objective_low", "objective_high", "merges_trained"}) {
      EXPECT_EQ(table["strategies"][name][key], plan["strategies"][name][key]) << name << key;
    }
  }
  EXPECT_THAT(RunMergeplan(Ask("--updates 4", "compare")).out, HasSubstr("consistency"));
}

// A model in which no distance has a start answers vanilla for every number: said aloud.
TEST_F(MeasuredCommand, TablesWithoutStartsAreNoted) {
  std::mt19937_64 random(3);
  CaseKind kind;
  kind.steps = 5;
  kind.start_matters = false;
  ASSERT_TRUE(WriteMeasured(MakeCase(kind, random).Tables(), File()).ok());
  const Outcome run = RunMergeplan(Ask("--updates 4"));
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.err, HasSubstr("no distance"));
  EXPECT_THAT(run.out, HasSubstr("plan         (1..5)"));
}

TEST_F(MeasuredCommand, WrongFlagsAreNamedInOneLine) {
  const std::pair<std::string, std::string> cases[] = {
      {Ask(""), "no budget: give --updates K"},
      {Ask("--updates 3 --total-updates 3"), "--updates and --total-updates are both given"},
      {Ask("--updates 0"), "--updates: \"0\" is out of range"},
      {Ask("--updates 3 --train-time 1"), "--train-time: is for the linear model"},
      {Ask("--updates 3 --variances 1,2"), "--variances: is for the linear model"},
      {Ask("--updates 3 --init child"), "--init: is for the linear model"},
      {Ask("--updates 3 --schedule cosine"), "--schedule: is for the linear model"},
      {Ask("--updates 3 --lr 0.1 --iterations 3"), "is for the linear model"},
      {Ask("--updates 3 -T 9"), "--teacher-steps: is for the linear model"},
      {Ask("--updates 3 spectrum.toml"), "INPUT: is for the linear model"},
      {Ask("--updates 3 --combine max"), "--combine: unknown word \"max\""},
      {Ask("--updates 3 -N 10"), "--student-steps: is 10, expected 1..9"},
      {Ask("--updates 3 --max-children 1"), "--max-children: \"1\" is out of range"},
      {Ask("--total-updates 30 --max-merges 2 --max-children 2"), "and at most 2 merges has"},
      {Ask("--updates 3 --draws -1"), "--draws: \"-1\" is out of range"},
      {Ask("--updates 3 -o plan.toml"), "name a file that ends in .json"},
      {Ask("--updates 3 -o /nowhere/plan.json"), "there is no folder"},
      {"plan --variances 1 -T 4 --schedule cosine -s 1 --updates 3",
       "--updates: has no effect without --measured"},
      {"compare --variances 1 -T 4 --schedule cosine -s 1 --combine sum",
       "--combine: has no effect without --measured"},
      {"plan --variances 1 -T 4 -s 1", "--schedule is required, unless --tables or --measured"},
      {Ask("--updates 3 --train-time 1", "compare"), "--train-time: is for the linear model"},
  };
  for (const auto& [arguments, says] : cases) {
    const Outcome run = RunMergeplan(arguments);
    EXPECT_EQ(run.code, 2) << arguments << ": " << run.err;
    EXPECT_THAT(run.err, HasSubstr(says)) << arguments;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_EQ(run.out, "") << arguments;
  }
}

TEST_F(MeasuredCommand, BrokenFilesAreNamed) {
  ASSERT_TRUE(WriteFileAtomically(File(), "format = 1\nkind = \"measured\"\nfoo = 2\n").ok());
  const Outcome run = RunMergeplan(Ask("--updates 3"));
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr(File() + ":3: foo: unknown key"));
  const Outcome none = RunMergeplan("plan --updates 3 --measured '" + folder_ + "/none.toml'");
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("none.toml"));
}

}  // namespace
}  // namespace mergeplan
