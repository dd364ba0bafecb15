// Several schedules and numbers of teacher steps, limits, fewer blocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/plan/io/document.h"
#include "tests/planner/cli/command_line.h"

namespace mergeplan {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kProblem[] = "plan --variances 0.2,3 -s 1.6 ";

json Answer(const std::string& arguments, int code = 0) {
  const Outcome run = RunMergeplan(arguments + " --json");
  EXPECT_EQ(run.code, code) << run.err;
  return json::parse(run.out);
}

void ExpectMisuse(const std::string& arguments, const std::string& says) {
  const Outcome run = RunMergeplan(arguments);
  EXPECT_EQ(run.code, 2) << arguments << ": " << run.err;
  EXPECT_THAT(run.err, HasSubstr(says)) << arguments;
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  EXPECT_EQ(run.out, "") << arguments;
}

TEST(Choices, EveryCombinationHasTheFiguresOfItsOwnPlan) {
  const json all =
      Answer(std::string(kProblem) +
             "-T 8,16 --schedule cosine,edm:rho=5,sigma_max=40 --schedule flow:shift=3");
  const json& rows = all["combinations"];
  ASSERT_EQ(rows.size(), 6U);
  const char* schedules[] = {"cosine", "edm:rho=5,sigma_max=40", "flow:shift=3"};
  double least = 1e300;
  int best = -1;
  for (int k = 0; k < 6; ++k) {
    const json& row = rows[k];
    EXPECT_EQ(row["schedule"], schedules[k / 2]);
    EXPECT_EQ(row["teacher_steps"], k % 2 == 0 ? 8 : 16);
    const json alone = Answer(std::string(kProblem) + "-T " + (k % 2 == 0 ? "8" : "16") +
                              " --schedule " + schedules[k / 2]);
    for (const char* key :
         {"objective", "lower_bound", "gap", "status", "guarantee", "objective_teacher",
          "merges_trained", "rounds", "teacher_calls", "student_calls"}) {
      EXPECT_EQ(row[key], alone[key]) << key << " of row " << k;
    }
    if (row["objective_data"] < least) {
      least = row["objective_data"];
      best = k;
    }
  }
  EXPECT_EQ(all["best"], best);
  EXPECT_EQ(all["compared_by"], "objective_data");
  EXPECT_FALSE(all["best_is_certain"]);
  EXPECT_THAT(all["remark"].get<std::string>(), HasSubstr("may not be compared between rows"));
}

TEST(Choices, PlannedForTheDataObjectivesMayBeCompared) {
  const json all = Answer(std::string(kProblem) + "-T 8,32 --schedule cosine --reference data");
  EXPECT_EQ(all["best"], 1);
  EXPECT_TRUE(all["best_is_certain"]);
  EXPECT_EQ(all["combinations"][1]["objective"], all["combinations"][1]["objective_data"]);
  EXPECT_THAT(all["remark"].get<std::string>(), HasSubstr("objectives may be compared"));
}

TEST(Choices, TheTableMarksOneRowAndSaysWhatMayBeCompared) {
  const Outcome run = RunMergeplan(std::string(kProblem) + "-T 8,16 --schedule cosine,flow");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("student/data"), HasSubstr("may not be compared")));
  int marked = 0;
  for (std::size_t at = run.out.find("\n* "); at != std::string::npos;
       at = run.out.find("\n* ", at + 1)) {
    ++marked;
  }
  EXPECT_EQ(marked, 1);
}

TEST(Choices, OneOfEachIsAPlanAsBefore) {
  const json one = Answer(std::string(kProblem) + "-T 8 --schedule edm:rho=5,sigma_max=40");
  EXPECT_EQ(one["schedule"], "edm:rho=5,sigma_max=40");
  EXPECT_FALSE(one.contains("combinations"));
}

TEST(Choices, TheTimeLimitIsSharedAndStopsWithUsableRows) {
  std::string list = "0.5";
  for (int k = 1; k < 80; ++k) absl::StrAppend(&list, ",", 0.5 + 0.02 * k);
  const json all = Answer("plan --variances " + list +
                              " -T 48,64 --schedule cosine,flow -s 1.6 --gap 0 --time-limit 0.001",
                          3);
  ASSERT_EQ(all["combinations"].size(), 4U);
  for (const json& row : all["combinations"]) {
    EXPECT_EQ(row["status"], "time_limit");
    EXPECT_LE(row["lower_bound"], row["objective"]);
  }
}

TEST(Choices, WhatIsWrongIsNamed) {
  const std::string p = kProblem;
  ExpectMisuse(p + "-T 8 --schedule cosine,flwo", "schedule \"flwo\"");
  ExpectMisuse(p + "-T 8 --schedule cosine,,flow", "nothing between two commas");
  ExpectMisuse(p + "-T 8 --schedule cosine --schedule cosine", "cosine is named twice");
  ExpectMisuse(p + "-T 8,8 --schedule cosine", "--teacher-steps: 8 is named twice");
  ExpectMisuse(p + "-T 8,x --schedule cosine", "--teacher-steps: \"x\" is no whole number");
  ExpectMisuse(p + "-T 8,0 --schedule cosine", "--teacher-steps: \"0\" is out of range");
  ExpectMisuse(p + "-T 8,16 --schedule cosine -N 9", "--student-steps: is 9, expected 1..8");
  ExpectMisuse(p + "--schedule cosine,flow", "teacher steps are missing");
  ExpectMisuse(p + "-T 8,16 --schedule cosine --sensitivity", "--sensitivity: is about one plan");
  const std::string folder = TestFolder();
  ExpectMisuse(p + "-T 8,16 --schedule cosine -o '" + folder + "/p.toml'",
               "--output: is about one plan");
  EXPECT_FALSE(std::filesystem::exists(folder + "/p.toml"));
  // Other commands take one of each.
  ExpectMisuse("compare --variances 1 -T 8,16 --schedule cosine -s 1",
               "\"8,16\" is no whole number");
}

TEST(Limits, AreKeptSaidAndRecorded) {
  const std::string folder = TestFolder();
  const std::string path = folder + "/p.toml";
  const std::string problem = "plan --variances 0.2,0.8,3 -T 24 --schedule cosine -s 1.6 --gap 0 ";
  const json any = Answer(problem);
  const json few = Answer(problem + "--max-merges 2 -o '" + path + "'");
  EXPECT_GT(any["merges_trained"], 2);
  EXPECT_LE(few["merges_trained"], 2);
  EXPECT_EQ(few["max_merges"], 2);
  EXPECT_FALSE(any.contains("max_merges"));
  EXPECT_GT(few["objective"], any["objective"]);
  EXPECT_EQ(few["status"], "optimal");
  EXPECT_THAT(few["guarantee"].get<std::string>(), HasSubstr("at most 2 merges"));
  const absl::StatusOr<PlanDocument> read = ReadPlan(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->max_merges, 2);
  EXPECT_EQ(read->status, "optimal");
  const json flat = Answer(problem + "--max-rounds 1");
  EXPECT_EQ(flat["rounds"], 1);
  EXPECT_EQ(flat["max_rounds"], 1);
  // One round of one block is vanilla.
  EXPECT_EQ(flat["objective"], flat["strategies"]["vanilla"]["objective"]);
  EXPECT_EQ(flat["teacher_calls"], 24);
  EXPECT_EQ(flat["student_calls"], 0);
  ExpectMisuse(problem + "--max-merges 0", "--max-merges: \"0\" is out of range");
  ExpectMisuse(problem + "--max-rounds -1", "--max-rounds: \"-1\" is out of range");
  // Binary plans may merge all steps at once too.
  EXPECT_EQ(Answer(problem + "--space binary --max-merges 1")["merges_trained"], 1);
  EXPECT_LE(Answer(problem + "--space binary --max-rounds 3")["rounds"], 3);
}

TEST(Costs, OfEveryStrategyUnderBothBudgets) {
  for (const char* command : {"plan", "compare"}) {
    const json out =
        Answer(std::string(command) + " --variances 0.2,3 -T 16 --schedule cosine -s 1.6 -N 2");
    const json& s = out["strategies"];
    for (const char* name : {"vanilla", "progressive", "boot", "consistency"}) {
      EXPECT_TRUE(s[name].contains("objective")) << name;
      EXPECT_TRUE(s[name].contains("objective_equal_total_time")) << name;
      EXPECT_EQ(s[name]["teacher_calls"], 16) << name;
    }
    EXPECT_EQ(s["vanilla"]["rounds"], 1);
    EXPECT_EQ(s["progressive"]["rounds"], 3);
    EXPECT_EQ(s["boot"]["rounds"], 7);
    EXPECT_EQ(s["boot"]["student_calls"], 12);  // 7 merges per block, of which 6 are called
    EXPECT_EQ(s["vanilla"]["student_calls"], 0);
  }
}

TEST(FewerBlocks, AreNamedWhereTheyAreBetter) {
  // Between 1 and min lambda_0 fewer blocks never are worse.
  const std::string problem = "plan --variances 1.02,1.03 -T 16 --schedule cosine -s 1.6 -N 4";
  const json plan = Answer(problem);
  const json& better = plan["fewer_blocks_better"];
  ASSERT_TRUE(better.is_object()) << plan;
  EXPECT_EQ(better["student_steps"], 1);
  EXPECT_TRUE(better["certain"]);
  EXPECT_LT(better["objective"], plan["objective"]);
  EXPECT_EQ(better["merges_trained"], 15);
  EXPECT_EQ(plan["fewer_blocks"]["tried"].size(), 3U);
  EXPECT_EQ(better["objective"],
            Answer("plan --variances 1.02,1.03 -T 16 --schedule cosine -s 1.6")["objective"]);
  const Outcome text = RunMergeplan(problem);
  EXPECT_THAT(text.out, HasSubstr("fewer steps are better: a student of 1 step"));
}

TEST(FewerBlocks, AreNullWhereTheyAreNot) {
  const std::string problem = "plan --variances 0.1,0.6 -T 16 --schedule cosine -s 1.6";
  const json four = Answer(problem + " -N 4"), one = Answer(problem);
  EXPECT_TRUE(four["fewer_blocks_better"].is_null());
  EXPECT_TRUE(one.contains("fewer_blocks_better"));
  EXPECT_TRUE(one["fewer_blocks_better"].is_null());
  EXPECT_FALSE(one.contains("fewer_blocks"));
  EXPECT_THAT(RunMergeplan(problem + " -N 4").out, HasSubstr("(tried: 3, 2, 1)"));
  EXPECT_THAT(RunMergeplan(problem).out, Not(HasSubstr("fewer")));
}

// What --json prints can be kept as a plan file.
TEST(PlanJson, WithItsRemarksIsAPlanFile) {
  const std::string folder = TestFolder();
  const Outcome run = RunMergeplan(
      "plan --variances 0.2,3 -T 8 --schedule cosine -s 1 -N 2 --sensitivity --relative-error 0.1 "
      "--draws 20 --json >'" +
      folder + "/p.json'; true");
  EXPECT_EQ(run.code, 0) << run.err;
  const absl::StatusOr<PlanDocument> read = ReadPlan(folder + "/p.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_NE(read->status, "unchecked");
}

TEST(Device, IsAWord) {
  const std::string problem = std::string(kProblem) + "-T 8 --schedule cosine ";
  EXPECT_EQ(Answer(problem + "--device cpu")["device"], "cpu");
  EXPECT_EQ(Answer(problem + "--device auto")["objective"],
            Answer(problem + "--device cpu")["objective"]);
  ExpectMisuse(problem + "--device gpu", "--device: unknown word \"gpu\"");
}

}  // namespace
}  // namespace mergeplan
