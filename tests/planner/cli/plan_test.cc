#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/mixture/mixture.h"
#include "planner/mixture/mixture_io.h"
#include "planner/plan/io/document.h"
#include "tests/planner/cli/command_line.h"

namespace mergeplan {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

TEST(PlanCommand, TwoDimensionsAroundOneAreSolvedExactly) {
  const Outcome run = RunMergeplan(
      "plan --variances 0.95,1.05 --teacher-steps 32 --schedule cosine --train-time 6.4 --gap 0 "
      "--json");
  ASSERT_EQ(run.code, 0) << run.err;
  const json plan = json::parse(run.out);
  EXPECT_NEAR(plan["objective"], 1.983715408656e-4, 5e-17);
  EXPECT_EQ(plan["status"], "optimal");
  EXPECT_LE(plan["objective"].get<double>() - plan["lower_bound"].get<double>(),
            2 * plan["tolerance"].get<double>());
  for (const char* key :
       {"teacher_steps", "student_steps", "dimensions", "init", "reference", "objective_surrogate",
        "objective_teacher", "gap", "guarantee", "merges", "blocks", "tree", "value", "tau",
        "seconds", "objective_equal_total_time", "merges_trained"}) {
    EXPECT_TRUE(plan.contains(key)) << key;
  }
  for (const char* name : {"vanilla", "progressive", "boot", "consistency"}) {
    const json& figures = plan["strategies"][name];
    EXPECT_GE(figures["objective"].get<double>(), plan["objective"].get<double>());
    EXPECT_TRUE(figures.contains("objective_equal_total_time"));
    EXPECT_EQ(figures["merges_trained"], std::string(name) == "vanilla" ? 1 : 31);
  }
}

// One file in the place of another: what it is, what is expected, what to do.
TEST(PlanCommand, FilesThatAreTakenForEachOtherAreNamed) {
  const std::string folder = TestFolder(), plan = folder + "/plan.toml";
  const std::string spectrum = folder + "/spectrum.toml", measured = folder + "/measured.toml";
  NpzWriter npz;
  npz.Add("z", {4, 2}, {0.1, 0.2, -0.4, 0.3, 0.5, -0.1, 0.2, -0.6});
  ASSERT_TRUE(npz.Write(folder + "/z.npz").ok());
  ASSERT_EQ(RunMergeplan("analyze '" + folder + "/z.npz' -o '" + spectrum + "'").code, 0);
  const std::string ask = " -T 8 --schedule cosine --train-time 1 --gap 0";
  ASSERT_EQ(RunMergeplan("plan '" + spectrum + "'" + ask + " -o '" + plan + "'").code, 0);
  ASSERT_TRUE(
      WriteFileAtomically(measured, "format = 1\nkind = \"measured\"\nteacher_steps = 4\n").ok());
  const auto expect = [](const std::string& words, const std::string& file,
                         const std::string& found, const std::string& expected,
                         const std::string& next) {
    const Outcome run = RunMergeplan(words);
    EXPECT_EQ(run.code, 1) << words;
    EXPECT_THAT(run.err, AllOf(HasSubstr(file + ": is " + found + ", expected " + expected),
                               HasSubstr(next)))
        << words;
  };
  expect("plan '" + plan + "'" + ask, plan, "a plan", "a spectrum (mergeplan analyze -o",
         "mergeplan show prints a plan");
  expect("plan '" + measured + "'" + ask, measured, "measured tables", "a spectrum",
         "mergeplan plan --measured FILE");
  for (const std::string command : {"show '", "export --format sigmas '"}) {
    expect(command + spectrum + "'", spectrum, "a spectrum", "a plan (mergeplan plan -o",
           "mergeplan plan FILE makes a plan for it");
  }
  expect("plan --measured '" + spectrum + "' --updates 5", spectrum, "a spectrum",
         "measured tables (mergeplan calibrate -o", "mergeplan plan FILE");
  expect("plan --measured '" + plan + "' --updates 5", plan, "a plan", "measured tables",
         "mergeplan show");
  expect("spectrum merge '" + spectrum + "' '" + plan + "' -o '" + folder + "/sum.toml'", plan,
         "a plan", "a spectrum", "mergeplan show");
}

TEST(PlanCommand, NaryIsBetterThanAlgorithmOne) {
  const std::string problem =
      "plan --variances 1.2 --teacher-steps 32 --schedule cosine --train-time 1.6 --gap 0 --json";
  const json nary = json::parse(RunMergeplan(problem).out);
  const json binary = json::parse(RunMergeplan(problem + " --space binary").out);
  EXPECT_NEAR(nary["objective"], 3.286923e-5, 5e-12);
  EXPECT_NEAR(binary["objective"], 3.301690e-5, 5e-12);
}

// Fashion-MNIST's figures in gradient-flow form would need the data; SGD against its own closed
// form does not.
TEST(PlanCommand, SgdBudgetIsTheProductOfItsUpdates) {
  const json plan = json::parse(RunMergeplan("plan --variances 0.5 --teacher-steps 2 --schedule "
                                             "cosine --lr 0.01 --iterations 10 --gap 0 --json")
                                    .out);
  const double a = std::sqrt(0.5);  // alpha_1 = sigma_1
  const double a1 = a * 0.5 / (0.5 * 0.5 + 0.5);
  const double gamma = std::pow(1 - 2 * 0.01, 10);
  const double value = (1 - gamma) * a1 * a + gamma * a;
  EXPECT_NEAR(plan["objective"], (a1 * a - value) * (a1 * a - value), 1e-15);
}

TEST(PlanCommand, FilesReadBack) {
  const std::string folder = TestFolder();
  for (const char* name : {"plan.toml", "plan.json"}) {
    const std::string path = folder + "/" + name;
    const Outcome run = RunMergeplan(
        "plan --variances 0.5,1.5,3 -T 12 --schedule ddpm-linear -s 1 -N 2 -o '" + path + "'");
    ASSERT_EQ(run.code, 0) << run.err;
    const absl::StatusOr<PlanDocument> read = ReadPlan(path);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->plan.student_steps(), 2);
    const Outcome shown = RunMergeplan("show '" + path + "' --svg '" + folder + "/plan.svg'");
    EXPECT_EQ(shown.code, 0) << shown.err;
    EXPECT_THAT(shown.out, HasSubstr("12 teacher steps into 2 student steps"));
    EXPECT_THAT(*ReadFile(folder + "/plan.svg"), HasSubstr("<svg"));
  }
}

TEST(PlanCommand, VariancesFromFiles) {
  const std::string folder = TestFolder();
  NpzWriter npz;
  npz.Add("lambda", {2}, {0.95, 1.05});
  ASSERT_TRUE(npz.Write(folder + "/v.npz").ok());
  const Outcome run = RunMergeplan("plan --variances '" + folder +
                                   "/v.npz:lambda' -T 8 --schedule cosine -s 1 --json");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(json::parse(run.out)["dimensions"], 2);
  const Outcome wrong =
      RunMergeplan("plan --variances '" + folder + "/v.npz:mu' -T 8 --schedule cosine -s 1");
  EXPECT_NE(wrong.code, 0);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("mu"), HasSubstr("lambda")));
}

// A mixture stands for the Gaussian with its moments: circle of radius 2, deviation 0.3, three
// modes, so every variance is 2 + 0.09.
TEST(PlanCommand, AMixtureIsPlannedForByItsMoments) {
  const std::string folder = TestFolder();
  ASSERT_TRUE(WriteMixture(*CircleMixture(3, 2.0, 0.3), folder + "/a mixture.toml").ok());
  const std::string question = " -T 8 --schedule cosine -s 1 --reference teacher --json";
  const Outcome run = RunMergeplan("plan '" + folder + "/a mixture.toml'" + question);
  ASSERT_EQ(run.code, 0) << run.err;
  const json plan = json::parse(run.out);
  EXPECT_EQ(plan["dimensions"], 2);
  const Outcome same = RunMergeplan("plan --variances 2.09,2.09" + question);
  EXPECT_NEAR(plan["objective"].get<double>(), json::parse(same.out)["objective"].get<double>(),
              1e-12);
  EXPECT_EQ(
      RunMergeplan("compare '" + folder + "/a mixture.toml' -T 8 --schedule cosine -s 1").code, 0);
}

TEST(PlanCommand, TimeLimitStopsWithAUsableResult) {
  std::string list = "0.5";
  for (int k = 1; k < 80; ++k) absl::StrAppend(&list, ",", 0.5 + 0.02 * k);
  const Outcome run =
      RunMergeplan("plan --variances " + list +
                   " -T 64 --schedule cosine -s 1.6 --gap 0 --time-limit 0.001 --json");
  EXPECT_EQ(run.code, 3) << run.err;
  const json plan = json::parse(run.out);
  EXPECT_EQ(plan["status"], "time_limit");
  EXPECT_GE(plan["lower_bound"], 0.0);
  EXPECT_LE(plan["lower_bound"], plan["objective"]);
}

TEST(CompareCommand, ShowsBothBudgets) {
  const Outcome run =
      RunMergeplan("compare --variances 0.2,3 -T 16 --schedule cosine -s 1.6 --json");
  ASSERT_EQ(run.code, 0) << run.err;
  const json table = json::parse(run.out);
  // At the same total time one shot has all of it: never worse than with the share of one merge.
  EXPECT_LT(table["strategies"]["vanilla"]["objective_equal_total_time"].get<double>(),
            table["strategies"]["vanilla"]["objective"].get<double>());
  // BOOT spends what the total is made of.
  EXPECT_EQ(table["strategies"]["boot"]["objective_equal_total_time"],
            table["strategies"]["boot"]["objective"]);
}

struct Misuse {
  const char* arguments;
  const char* says;
};

TEST(CommandLine, WrongFlagsAreNamedInOneLine) {
  const Misuse cases[] = {
      {"", "subcommand"},
      {"frobnicate", "frobnicate"},
      {"plan", "--schedule"},
      {"plan --schedule cosine -T 4 -s 1", "give a spectrum.toml, data, --variances or --tables"},
      {"plan --variances 1,x -T 4 --schedule cosine -s 1", "--variances: \"x\" is no number"},
      {"plan --variances '' -T 4 --schedule cosine -s 1", "--variances: is empty, expected LIST"},
      {"plan --variances 1 -T 4 --schedule cosine",
       "no budget: give --train-time S, or --lr RATE --iterations K"},
      {"plan --variances 1 -T 4 --schedule cosine --lr 0.1", "--lr needs --iterations"},
      {"plan --variances 1 -T 4 --schedule cosine -s 1 --lr 0.1 --iterations 5", "--"},
      {"plan --variances 1 -T 4 --schedule cosine --lr 0.7 --iterations 5", "largest usable rate"},
      {"plan --variances 1 -T 4 --schedule cosine -s -1", "--train-time: \"-1\" is out of range"},
      {"plan --variances 1 -T 4 --schedule cosine -s nan", "--train-time: \"nan\" is out of range"},
      {"plan --variances -1 -T 4 --schedule cosine -s 1", "variance 1 is -1"},
      {"plan --variances nan -T 4 --schedule cosine -s 1", "variance 1 is nan"},
      {"plan --variances 1,2 --weights 1 -T 4 --schedule cosine -s 1", "1 given for 2 variances"},
      {"plan --variances 1 -T 4 --schedule cosin -s 1", "cosin"},
      {"plan --variances 1 --schedule cosine -s 1", "teacher"},
      {"plan --variances 1 -T four --schedule cosine -s 1", "teacher-steps"},
      {"plan --variances 1 -T 4 --schedule cosine -s 1 --init chld",
       "--init: unknown word \"chld\""},
      {"plan --variances 1 -T 4 --schedule cosine -s 1 --reference x",
       "--reference: unknown word \"x\""},
      {"plan --variances 1 -T 4 --schedule cosine -s 1 --space x", "--space: unknown word \"x\""},
      {"plan --variances 1 -T 4 --schedule cosine -s 1 -N 5",
       "--student-steps: is 5, expected 1..4"},
      {"plan --variances 1 -T 4 --schedule cosine -s 1 --gap 2", "--gap: \"2\" is out of range"},
      {"plan --variances 1 -T 4 --schedule cosine -s 1 --time-limit 0",
       "--time-limit: \"0\" is out of range"},
      {"plan --variances 1 -T 4 --schedule cosine -s 1 --basis pca",
       "--basis: has no effect with --variances"},
      {"analyze", "INPUT"},
      {"analyze x.npy --scale 1", "--scale"},
      {"analyze x.npy -T 4 -s 1", "advice on a strategy needs --schedule"},
      {"report -o x.html", "RUN"},
      {"show", "PLAN"},
  };
  for (const Misuse& c : cases) {
    const Outcome run = RunMergeplan(c.arguments);
    EXPECT_EQ(run.code, 2) << c.arguments << ": " << run.err;
    EXPECT_THAT(run.err, HasSubstr(c.says)) << c.arguments;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_EQ(run.out, "") << c.arguments;
  }
}

TEST(CommandLine, FilesThatAreMissingOrBrokenAreNamed) {
  const std::string folder = TestFolder();
  ASSERT_TRUE(WriteFileAtomically(folder + "/broken.toml", "format = 1\nmerges = [").ok());
  for (const std::string& arguments :
       {"show '" + folder + "/none.toml'", "show '" + folder + "/broken.toml'",
        "analyze '" + folder + "/none.npy'",
        "plan '" + folder + "/broken.toml' -T 4 --schedule cosine -s 1",
        "report '" + folder + "/norun' -o /dev/null"}) {
    const Outcome run = RunMergeplan(arguments);
    EXPECT_EQ(run.code, 1) << arguments << ": " << run.err;
    EXPECT_THAT(run.err, HasSubstr(folder)) << arguments;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }
}

TEST(CommandLine, HelpHasAnExample) {
  for (const char* command : {"", "analyze", "plan", "compare", "show", "report"}) {
    const Outcome run = RunMergeplan(std::string(command) + " --help");
    EXPECT_EQ(run.code, 0);
    EXPECT_THAT(run.out, HasSubstr("example: mergeplan"));
  }
  EXPECT_THAT(RunMergeplan("--version").out, testing::StartsWith("mergeplan "));
}

}  // namespace
}  // namespace mergeplan
