// `mergeplan report` on run folders as a training leaves them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/measured/tables.h"
#include "planner/mixture/mixture.h"
#include "planner/mixture/mixture_io.h"
#include "planner/operators/canonical.h"
#include "planner/plan/io/document.h"
#include "planner/plan/io/evaluate.h"
#include "planner/runs/result_file.h"
#include "planner/runs/run_info.h"
#include "tests/planner/cli/command_line.h"

namespace mergeplan {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ReportCommand : public testing::Test {
 protected:
  ReportCommand() : folder_(TestFolder()) {
    const Outcome plan = RunMergeplan(
        "plan --variances 0.5,2 -T 6 --schedule cosine --lr 0.01 --iterations 50 -o '" + folder_ +
        "/plan.toml'");
    EXPECT_EQ(plan.code, 0) << plan.err;
  }
  ~ReportCommand() override { std::filesystem::remove_all(folder_); }
  std::string Run(const std::string& name) const { return folder_ + "/" + name; }

  // A run of a strategy whose operators are exactly what the linear model predicts on the mean.
  void MakeRun(Strategy strategy, RunStatus status = RunStatus::kFinished,
               const std::string& spectrum = "", const std::string& prediction = "law") const {
    const std::string name(ToString(strategy));
    ASSERT_TRUE(MakeDirectories(Run(name)).ok());
    PlanDocument document = *ReadPlan(folder_ + "/plan.toml");
    const Model model = *ModelOf(document);
    document.plan = *CanonicalPlan(strategy, 6, 1);
    ASSERT_TRUE(ComputeFigures(model, &document).ok());
    document.status = "unchecked";
    document.lower_bound = 0;
    ASSERT_TRUE(WritePlan(document, Run(name) + "/plan.toml").ok());
    const std::vector<double> value = model.Value(document.plan);
    NpzWriter npz;
    npz.Add("value", {2}, value);
    npz.Add("predicted", {2}, value);
    npz.Add("samples", {2, 2}, {1, 2, 3, 4});
    npz.Add("teacher_samples", {2, 2}, {1, 2, 3, 5});
    const std::string bytes = *npz.Bytes();
    ASSERT_TRUE(WriteFileAtomically(Run(name) + "/result.npz", bytes).ok());
    RunResult result;
    result.summary = {
        name, "surrogate", document.objective, document.objective, 1.5, document.plan.size(),
        50,   3200};
    if (prediction == "none") result.summary.predicted = std::nan("");
    result.dimensions = 2;
    for (const Merge& merge : document.plan.merges()) {
      MergeRecord record;
      record.first = merge.first;
      record.last = merge.last;
      record.round = merge.round;
      record.initial_loss = 2;
      record.final_loss = 0.5;
      record.updates = 50;
      result.merges.push_back(record);
    }
    result.arrays_sha256 = Sha256(bytes);
    ASSERT_TRUE(WriteRunResult(result, Run(name)).ok());
    RunInfo info;
    info.status = status;
    info.strategy = name;
    info.teacher = prediction == "moments" ? kMixtureTeacher : kAnalyticTeacher;
    info.teacher_file = spectrum.empty() ? folder_ + "/none.toml" : spectrum;
    info.student = prediction == "moments" ? kExpertsStudent : kLinearStudent;
    info.basis = "given";
    info.dtype = "float64";
    info.device = "cpu";
    info.batch = 64;
    info.prediction = prediction;
    ASSERT_TRUE(WriteRunInfo(info, Run(name) + "/run.toml").ok());
  }
  Outcome Report(const std::string& runs, const std::string& more = "") const {
    return RunMergeplan("report " + runs + " -o '" + folder_ + "/r.html' " + more);
  }
  std::string Quoted(const std::string& name) const { return absl::StrCat("'", Run(name), "' "); }

  std::string folder_;
};

TEST_F(ReportCommand, PutsPredictedBesideAchieved) {
  MakeRun(Strategy::kBoot);
  MakeRun(Strategy::kVanilla);
  const Outcome run = Report(Quoted("boot") + Quoted("vanilla"), "--json --draws 1000");
  ASSERT_EQ(run.code, 0) << run.err;
  const nlohmann::json table = nlohmann::json::parse(run.out);
  ASSERT_EQ(table["strategies"].size(), 2u);
  for (const auto& row : table["strategies"]) {
    EXPECT_EQ(row["predicted_error"], row["achieved_error"]);
    EXPECT_EQ(row["seconds"], 1.5);
    EXPECT_EQ(row["merges_trained"], row["strategy"] == "boot" ? 5 : 1);
    // The mean is the least surprising draw of all.
    EXPECT_EQ(row["law_test"]["rejected"], 0);
  }
  const std::string page = *ReadFile(folder_ + "/r.html");
  EXPECT_THAT(page, AllOf(HasSubstr("boot"), HasSubstr("vanilla"), HasSubstr("<svg")));
}

// Runs that were trained in another way than the law of SGD is about.
TEST_F(ReportCommand, SaysWhereNothingIsPredicted) {
  MakeRun(Strategy::kBoot, RunStatus::kFinished, "", "none");
  MakeRun(Strategy::kVanilla, RunStatus::kFinished, "", "mean");
  const Outcome run = Report(Quoted("boot") + Quoted("vanilla"), "--json --draws 1000");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto strategies = nlohmann::json::parse(run.out)["strategies"];
  EXPECT_TRUE(strategies[0]["predicted_error"].is_null());
  EXPECT_TRUE(strategies[1]["predicted_error"].is_number());
  for (const auto& row : strategies) {
    EXPECT_TRUE(row["predicted_error_with_noise"].is_null());
    EXPECT_FALSE(row.contains("law_test"));
    EXPECT_TRUE(row["achieved_error"].is_number());
  }
  const Outcome table = Report(Quoted("boot"));
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr(" - "), HasSubstr("not tested"), Not(HasSubstr("nan"))));
  const std::string html = *ReadFile(folder_ + "/r.html");
  EXPECT_THAT(html, AllOf(HasSubstr("none predicted"), Not(HasSubstr(">nan<"))));
}

// Students that are no linear operators have no value for each dimension, but samples.
TEST_F(ReportCommand, ShowsSamplesOfStudentsThatAreNotLinear) {
  const auto circle = CircleMixture(3, 2.0, 0.3);
  ASSERT_TRUE(WriteMixture(*circle, folder_ + "/mixture.toml").ok());
  MakeRun(Strategy::kBoot, RunStatus::kFinished, folder_ + "/mixture.toml", "moments");
  const Outcome run = Report(Quoted("boot"));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("not tested"));
  const std::string page = *ReadFile(folder_ + "/r.html");
  EXPECT_THAT(page, AllOf(HasSubstr("no linear operators"), HasSubstr("Samples of boot"),
                          HasSubstr("0.707 from the teacher"), HasSubstr("Sorted variances"),
                          Not(HasSubstr("what was run"))));
}

TEST_F(ReportCommand, ARunThatIsNotWholeIsNamedWithTheNextStep) {
  MakeRun(Strategy::kBoot, RunStatus::kStopped);
  const Outcome stopped = Report(Quoted("boot"));
  EXPECT_EQ(stopped.code, 1);
  EXPECT_THAT(stopped.err, AllOf(HasSubstr("boot/run.toml: the run is stopped"),
                                 HasSubstr("mergeplan distill --resume -o ")));
  MakeRun(Strategy::kBoot);
  ASSERT_TRUE(WriteFileAtomically(Run("boot") + "/result.npz", "other").ok());
  const Outcome changed = Report(Quoted("boot"));
  EXPECT_EQ(changed.code, 1);
  EXPECT_THAT(changed.err,
              AllOf(HasSubstr("boot/result.npz: does not match the hash"), HasSubstr("--resume")));
  std::filesystem::remove(Run("boot") + "/result.toml");
  EXPECT_THAT(Report(Quoted("boot")).err, HasSubstr("boot/result.toml: cannot be read"));
  const Outcome none = Report(Quoted("none"));
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err,
              AllOf(HasSubstr(Run("none") + ": does not exist, expected the folder of a finished"),
                    HasSubstr("expected the folder of a finished run")));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/r.html"));
}

TEST_F(ReportCommand, TooManyDrawsAreRefusedWithFigures) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer needs more address space than the test allows";
#endif
  MakeRun(Strategy::kBoot);
  const Outcome many =
      RunMergeplan("report " + Quoted("boot") + "-o '" + folder_ + "/r.html' --draws 1000000000",
                   "ulimit -v 8000000");
  EXPECT_EQ(many.code, 1);
  EXPECT_THAT(many.err, AllOf(HasSubstr("--draws: 1000000000 draws of 5 merges needs about"),
                              HasSubstr("give fewer draws")));
  const Outcome beyond = Report(Quoted("boot"), "--draws 2147483647");
  EXPECT_EQ(beyond.code, 2);
  EXPECT_THAT(beyond.err, HasSubstr("expected one from 0 to 1000000000"));
}

TEST_F(ReportCommand, TheSameRunTwiceIsMisuse) {
  MakeRun(Strategy::kBoot);
  std::filesystem::create_directory_symlink(Run("boot"), Run("link"));
  for (const std::string& other : {Quoted("boot"), Quoted("./boot"), Quoted("link")}) {
    const Outcome run = Report(Quoted("boot") + other);
    EXPECT_EQ(run.code, 2) << run.err;
    EXPECT_THAT(run.err, HasSubstr("is the same folder as"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/r.html"));
}

TEST_F(ReportCommand, ProblemsThatDifferAreRefusedWithoutSayingReportTwice) {
  MakeRun(Strategy::kBoot);
  const Outcome plan = RunMergeplan(
      "plan --variances 0.5,2,3 -T 6 --schedule cosine --lr 0.01 --iterations 50 -o '" + folder_ +
      "/other.toml'");
  ASSERT_EQ(plan.code, 0) << plan.err;
  const Outcome run = Report(Quoted("boot"), "--plan '" + folder_ + "/other.toml'");
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, testing::StartsWith("mergeplan report: "));
  EXPECT_EQ(run.err.find("report:", 17), std::string::npos) << run.err;
}

TEST_F(ReportCommand, AFileIsToldWhatItIsAndWhatToGive) {
  MakeRun(Strategy::kBoot);
  const auto write = [&](const char* name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(Run(name), text).ok());
  };
  write("empty.toml", "");
  write("short.toml", "x");
  write("a.npz", "PK and more");
  write("a.json", "{}");
  write("s.toml", "format = 1\nkind = \"spectrum\"\n");
  write("cal.toml", "kind = \"measured\"\n");
  write("cal.answer.json", "{}");
  write("cal.npz", "PK");
  const std::string beside = "is a file that mergeplan calibrate writes beside its tables";
  for (const auto& [name, is, next] : std::vector<std::array<std::string, 3>>{
           {"empty.toml", "is an empty file", "run mergeplan calibrate again"},
           {"short.toml", "is a file of 1 byte that is none of mergeplan's",
            "run mergeplan calibrate again"},
           {"a.npz", "is a file of arrays (.npz)", "give one of those"},
           {"a.json", "is a file of JSON", "give one of those"},
           {"s.toml", "is a spectrum", "give one of those"},
           {"plan.toml", "is a plan", "give one of those"},
           {"cal.answer.json", beside, "give the tables, " + Run("cal.toml")},
           {"cal.npz", beside, "give the tables, " + Run("cal.toml")},
           {"boot/run.toml", "is a file in the folder of a run",
            "give the folder, " + Run("boot")}}) {
    const Outcome outcome = Report(Quoted(name));
    EXPECT_EQ(outcome.code, 1) << name;
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr(absl::StrCat(Run(name), ": ", is, ", expected the folder of a ")),
                      HasSubstr(next)));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/r.html"));
}

// What a calibration leaves is written by adapters/calibrate, whose test reads it; here is what can
// be wrong with it.
TEST_F(ReportCommand, ACalibrationHasAPageOfItsOwn) {
  const std::string tables = folder_ + "/m.toml", answer = folder_ + "/m.answer.json";
  MeasuredFunctions one;
  one.gain = [](int, int) { return MeasuredValue{0.9, 0.8, 1}; };
  one.distance = [](int i, int, int j) { return MeasuredValue::Exactly(0.1 * (j - i + 1)); };
  one.residual = [](int, int, std::int64_t) { return MeasuredValue{0.5, 0.4, 0.6}; };
  one.floor = [](int, int) { return MeasuredValue::Exactly(0.01); };
  ASSERT_TRUE(WriteMeasured(*TablesOfFunctions(3, one, {20}, false), tables).ok());
  const auto quoted = [](const std::string& path) { return "'" + path + "'"; };
  const Outcome missing = Report(quoted(tables));
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("m.answer.json: not found"), HasSubstr("--resume")));

  nlohmann::json error = {{"value", 0.1}, {"low", 0.05}, {"high", 0.2}};
  nlohmann::json score = {{"factor", 1.2}, {"merges", 1}, {"within_interval", 1}};
  nlohmann::json plan = {{"name", "measured plan"},
                         {"measured", error},
                         {"linear", 0.3},
                         {"blocks", {{1, 3}}},
                         {"merges", {{{"children", {{1, 1}, {2, 2}, {3, 3}}}}}}};
  nlohmann::json judged = {{"range", {1, 3}}, {"trained_children", {{2, 3}}},
                           {"measured", 0.1}, {"measured_standard_error", 0.01},
                           {"sum", error},    {"rms", error},
                           {"linear", 0.2}};
  nlohmann::json json = {{"output_sha256", *Sha256OfFile(tables)},
                         {"teacher", "unet:x"},
                         {"init", "child-jump"},
                         {"inputs", "rollout"},
                         {"training", "adam"},
                         {"iterations", 20},
                         {"pilot_updates", 20},
                         {"pilots", 1},
                         {"updates", 60},
                         {"teacher_calls", 100},
                         {"seconds", 1.5},
                         {"complete", true},
                         {"spread", 0.1},
                         {"spread_between_seeds", false},
                         {"floor_share", 1},
                         {"linear_train_time", 0.3},
                         {"better_than_linear_in_draws", 0},
                         {"combine", "sum"},
                         {"scores", {{"sum", score}, {"rms", score}, {"linear", score}}},
                         {"held_out", {judged}},
                         {"seen", nlohmann::json::array()},
                         {"plans", {plan, plan}},
                         {"curves",
                          {{{"range", {1, 3}},
                            {"trained_children", {{2, 3}}},
                            {"replicate", 0},
                            {"held_out", true},
                            {"start", 0.3},
                            {"updates", {10, 20}},
                            {"error", {0.2, 0.1}},
                            {"standard_error", {0.01, 0.01}},
                            {"fitted", {error, error}}}}}};
  const auto write = [&](const nlohmann::json& what) {
    ASSERT_TRUE(WriteFileAtomically(answer, what.dump()).ok());
  };
  write(json);
  const Outcome run = Report(quoted(tables), "--title 'My <page>'");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("1 pilots, 1 merges held out: typically off by a factor of 1.2"));
  const std::string page = *ReadFile(folder_ + "/r.html");
  EXPECT_THAT(page, AllOf(HasSubstr("My &lt;page&gt;"), HasSubstr("[1, 3] over [2, 3]"),
                          HasSubstr("Both models plan the same")));
  EXPECT_EQ(nlohmann::json::parse(Report(quoted(tables), "--json").out)["factor"], 1.2);

  const auto refused = [&](const std::string& runs, const std::string& more, int code,
                           const std::string& words) {
    const Outcome outcome = Report(runs, more);
    EXPECT_EQ(outcome.code, code) << words;
    EXPECT_THAT(outcome.err, HasSubstr(words));
  };
  refused(quoted(tables) + " 'x'", "", 2, "is a calibration, whose page holds nothing else");
  refused(quoted(tables), "--plan p.toml", 2, "--plan: is of runs");
  nlohmann::json other = json;
  other["output_sha256"] = "0";
  write(other);
  refused(quoted(tables), "", 1, "belongs to other tables");
  ASSERT_TRUE(WriteFileAtomically(answer, "{").ok());
  refused(quoted(tables), "", 1, "m.answer.json: is no whole JSON (1 byte), expected what");
  ASSERT_TRUE(WriteFileAtomically(answer, "[]").ok());
  refused(quoted(tables), "", 1, "m.answer.json: is an empty list, expected an object; run");

  // What was edited is refused with its key, what stands there and what should.
  std::filesystem::remove(folder_ + "/r.html");
  const auto edited = [&](const std::string& pointer, const nlohmann::json& value,
                          const std::string& words) {
    nlohmann::json changed = json;
    changed[nlohmann::json::json_pointer(pointer)] = value;
    write(changed);
    const Outcome outcome = Report(quoted(tables));
    EXPECT_EQ(outcome.code, 1) << pointer;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("m.answer.json: " + words),
                                   HasSubstr("run mergeplan calibrate again"),
                                   Not(HasSubstr("json.exception"))));
  };
  const nlohmann::json none = nlohmann::json::array();
  edited("/held_out", nullptr, "held_out: is null, expected a list");
  edited("/held_out", none, "held_out: is an empty list, expected a list of 1, as curves has them");
  edited("/curves", nullptr, "curves: is null, expected a list of 1 or more");
  edited("/curves", none, "curves: is an empty list, expected a list of 1 or more");
  edited("/plans", none, "plans: is an empty list, expected a list of 2 or more");
  edited("/pilots", 7, "pilots: is 7, expected 1, as curves has them");
  edited("/scores/rms/merges", 2, "scores.rms.merges: is 2, expected 1, as held_out has them");
  edited("/scores/sum/within_interval", 0, "scores.sum.within_interval: is 0, expected 1");
  edited("/scores/sum/factor", 0.5, "scores.sum.factor: is 0.5, expected a number from 1 to");
  edited("/scores", 3, "scores: is 3, expected an object");
  edited("/combine", "rms", "combine: is \"rms\", expected \"sum\", as in the tables");
  edited("/seconds", -1e300, "seconds: is -1e+300, expected a number from 0 to 1e+100");
  edited("/seconds", std::nan(""), "seconds: is null, expected a number");
  edited("/iterations", 1.5, "iterations: is 1.5, expected a whole number from 1 to");
  edited("/updates", 18446744073709551615U, "updates: is 18446744073709551615, expected a whole");
  edited("/complete", "yes", "complete: is \"yes\", expected true or false");
  edited("/teacher", none, "teacher: is an empty list, expected a text");
  for (const double measured : {-1.0, 0.0, 1e308}) {
    edited("/held_out/0/measured", measured, "held_out[0].measured: is ");
  }
  edited("/held_out/0/measured_standard_error", -1, "held_out[0].measured_standard_error: is -1");
  edited("/held_out/0/sum/low", 3, "held_out[0].sum.high: is 0.2, expected a number from 3 to");
  edited("/held_out/0/range", {1, 9}, "held_out[0].range[1]: is 9, expected a whole number from 1");
  edited("/curves/0/start", -1, "curves[0].start: is -1, expected a number from 0");
  edited("/curves/0/updates", {20, 10}, "curves[0].updates[1]: is 10, expected a whole number");
  edited("/curves/0/error", {0.1}, "curves[0].error: is a list of 1, expected a list of 2");
  edited("/plans/0/linear", -1, "plans[0].linear: is -1, expected a number from 0");
  edited("/plans/1/measured/value", 0, "plans[1].measured.value: is 0, expected a number above 0");
  edited("/plans/0/blocks", {{1, 2}}, "plans[0]: has merges and blocks that are no plan of 3");
  edited("/plans/0/merges/0/children", none, "plans[0].merges[0].children: is an empty list");
  for (const char* key : {"teacher", "plans", "curves", "held_out", "output_sha256", "scores"}) {
    other = json;
    other.erase(key);
    write(other);
    refused(quoted(tables), "", 1, absl::StrCat("m.answer.json: ", key, ": is missing, expected"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/r.html"));
}

}  // namespace
}  // namespace mergeplan
