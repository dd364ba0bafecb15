#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/plan/io/document.h"
#include "planner/plan/io/evaluate.h"
#include "tests/planner/cli/command_line.h"

namespace mergeplan {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kSteps = 10, kDimensions = 3;

std::vector<double> Table(double at_first, double at_last, double by_coordinate) {
  std::vector<double> out;
  for (int t = 0; t < kSteps; ++t) {
    for (int k = 0; k < kDimensions; ++k)
      out.push_back(at_first + (at_last - at_first) * t / (kSteps - 1) + by_coordinate * k);
  }
  return out;
}

class TablesCommand : public testing::Test {
 protected:
  // Writes an .npz of A, gamma and what is given; A and gamma where they are not among it.
  std::string Write(const std::string& name,
                    const std::vector<std::pair<std::string, std::vector<double>>>& more) {
    NpzWriter npz;
    bool has_gamma = false;
    for (const auto& [key, values] : more) {
      has_gamma = has_gamma || key == "gamma";
      if (values.size() == kSteps * kDimensions) {
        npz.Add(key, {kSteps, kDimensions}, values);
      } else {
        npz.Add(key, {static_cast<std::int64_t>(values.size())}, values);
      }
    }
    npz.Add("A", {kSteps, kDimensions}, Table(0.9, 1.1, -0.01));
    if (!has_gamma) npz.Add("gamma", {kSteps, kDimensions}, Table(0.7, 0.1, 0.05));
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(npz.Write(path).ok());
    return "'" + path + "'";
  }
  const std::string folder_ = TestFolder();
};

TEST_F(TablesCommand, PlansAndCompares) {
  const std::string file = Write("shrinkage.npz", {});
  const Outcome run = RunMergeplan("plan --tables " + file + " --gap 0 --json");
  ASSERT_EQ(run.code, 0) << run.err;
  const json plan = json::parse(run.out);
  EXPECT_EQ(plan["status"], "optimal");
  EXPECT_EQ(plan["teacher_steps"], kSteps);
  for (const char* key : {"schedule", "variances", "train_time", "init", "reference",
                          "objective_surrogate", "objective_equal_total_time"}) {
    EXPECT_FALSE(plan.contains(key)) << key;
  }
  const json table = json::parse(RunMergeplan("compare --tables " + file + " --json").out);
  EXPECT_EQ(table["strategies"], plan["strategies"]);
  EXPECT_FALSE(table["strategies"]["boot"].contains("objective_equal_total_time"));
  for (const json& figures : table["strategies"])
    EXPECT_GE(figures["objective"].get<double>(), plan["objective"].get<double>());
  const Outcome text = RunMergeplan("compare --tables " + file);
  EXPECT_THAT(text.out, AllOf(HasSubstr("10 teacher steps, tables of"), HasSubstr("boot"),
                              Not(HasSubstr("same total time"))));
}

// With p, q, tau and weights: the file gives the figures again, and show draws it.
TEST_F(TablesCommand, FilesReadBackAndAreShown) {
  const std::string file = Write("all.npz", {{"p", Table(1, 0.9, 0)},
                                             {"q", Table(0.1, -0.02, 0.01)},
                                             {"tau", {0.9, 1, 0.7}},
                                             {"weights", {1, 2, 0}}});
  for (const char* name : {"plan.toml", "plan.json"}) {
    const std::string path = folder_ + "/" + name;
    const Outcome run = RunMergeplan("plan --tables " + file + " -N 2 -o '" + path + "'");
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.out, AllOf(HasSubstr("(teacher "), Not(HasSubstr("surrogate"))));
    const absl::StatusOr<PlanDocument> read = ReadPlan(path);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_NE(read->status, "unchecked");
    ASSERT_TRUE(read->tables.has_value());
    EXPECT_EQ(read->tables->tau, (std::vector<double>{0.9, 1, 0.7}));
    EXPECT_EQ(read->tables->weights, (std::vector<double>{1, 2, 0}));
    EXPECT_EQ(read->tables->q, Table(0.1, -0.02, 0.01));
    EXPECT_EQ(ModelOf(*read)->Objective(read->plan), read->objective);
    const Outcome shown = RunMergeplan("show '" + path + "'");
    EXPECT_EQ(shown.code, 0) << shown.err;
    EXPECT_THAT(shown.out, AllOf(HasSubstr("10 teacher steps into 2 student steps"),
                                 Not(HasSubstr("total time"))));
    EXPECT_EQ(RunMergeplan("show '" + path + "' --json").code, 0);
  }
}

TEST_F(TablesCommand, WhatTheTablesSayIsMisuseBesideThem) {
  const std::string file = Write("shrinkage.npz", {});
  for (const char* flag :
       {"--variances 1,2,3", "--weights 1,1,1", "--schedule cosine", "-T 10", "--train-time 1",
        "--lr 0.1", "--iterations 5", "--init child", "--reference data", "--batch 3",
        "--feature-norm 2", "--basis pca", "data.npy"}) {
    for (const char* command : {"plan", "compare"}) {
      const Outcome run = RunMergeplan(absl::StrCat(command, " --tables ", file, " ", flag));
      EXPECT_EQ(run.code, 2) << flag;
      EXPECT_THAT(run.err, HasSubstr("has no effect with --tables, whose arrays say what")) << flag;
    }
  }
  const Outcome run = RunMergeplan("plan --tables " + file + " -N 11");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("--student-steps: is 11, expected 1..10"));
  EXPECT_EQ(RunMergeplan("plan --tables tables.npy").code, 2);
  EXPECT_THAT(RunMergeplan("plan").err, HasSubstr("--schedule is required, unless --tables"));
}

TEST_F(TablesCommand, FaultyFiles) {
  const auto expect = [&](const std::vector<std::pair<std::string, std::vector<double>>>& more,
                          const char* message) {
    const Outcome run = RunMergeplan("plan --tables " + Write("faulty.npz", more));
    EXPECT_EQ(run.code, 1) << message;
    EXPECT_THAT(run.err, AllOf(HasSubstr("faulty.npz: "), HasSubstr(message)));
  };
  std::vector<double> gamma = Table(0.5, 0.5, 0);
  gamma[kDimensions * 4 + 1] = 1.5;
  expect({{"gamma", gamma}}, "gamma at level 5, coordinate 2 is 1.5, expected 0..1");
  expect({{"gamma", {0.5, 0.5}}}, "gamma has the shape (2,)");
  expect({{"q", Table(-2, -2, 0)}}, "would start as p V + q = ");
  expect({{"tau", {1, 2}}},
         "tau has the shape (2,) and the type <f8, expected numbers of shape "
         "(3,), one per coordinate");
  expect({{"lambda", {1, 2, 3}}}, "unknown array \"lambda\", expected A and gamma");
  EXPECT_EQ(RunMergeplan("plan --tables '" + folder_ + "/absent.npz'").code, 1);
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/text.npz", "no arrays").ok());
  EXPECT_EQ(RunMergeplan("compare --tables '" + folder_ + "/text.npz'").code, 1);
}

TEST_F(TablesCommand, TheInputIsNeverOverwritten) {
  const std::string file = Write("shrinkage.npz", {});
  EXPECT_EQ(RunMergeplan("plan --tables " + file + " -o " + file).code, 2);
}

}  // namespace
}  // namespace mergeplan
