// The conformance suite itself: a plugin that keeps every rule passes, and each rule that it breaks
// makes exactly the check fail that is about that rule.
#include <sys/wait.h>

#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plugins/conformance/mergeplan_conformance.h"
#include "tests/plugins/plugin_folder.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct MutantRan {
  int code;
  std::set<std::string> failed;
  std::string out;
};

// Runs the program mergeplan-plugin-conformance against a library.
MutantRan RunSuite(const std::string& arguments) {
  const PluginFolder folder;
  const std::string command = std::string("'") + MERGEPLAN_CONFORMANCE_TOOL + "' " + arguments +
                              " --gtest_brief=1 >'" + folder.File("out") + "' 2>&1";
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): our own words
  MutantRan ran{WIFEXITED(status) ? WEXITSTATUS(status) : -1, {}, Slurp(folder.File("out"))};
  std::istringstream lines(ran.out);
  const std::string mark = "[  FAILED  ] ";
  for (std::string line; std::getline(lines, line);) {
    // "[  FAILED  ] Plan.LogsLines (3 ms)"
    if (line.rfind(mark, 0) != 0 || line.find('.') == std::string::npos) continue;
    ran.failed.insert(line.substr(mark.size(), line.find(' ', mark.size()) - mark.size()));
  }
  return ran;
}

std::string Fixture(const std::string& name) {
  return std::string("'").append(PluginFolder::FixtureFolder() / (name + ".so")).append("'");
}

struct Mutant {
  const char* name;
  const char* check;    // the one that must fail
  const char* message;  // a part of what it says
};

const Mutant kMutants[] = {
    {"entry-null", "Entry.StaticData", "returned NULL"},
    {"entry-throws", "Entry.StaticData", "threw an exception"},
    {"entry-moves", "Entry.StaticData", "returned another address"},
    {"entry-changes", "Entry.StaticData", "has changed between calls"},
    {"size-small", "Entry.Size", "expected sizeof(mergeplan_plugin)"},
    {"size-tiny", "Entry.Size", "too small to say which ABI"},
    {"size-large", "Entry.Size", "expected sizeof(mergeplan_plugin)"},
    {"major", "Entry.Version", "MERGEPLAN_ABI_MAJOR"},
    {"needed", "Entry.Version", "later minor"},
    {"no-plan", "Entry.Functions", "plan is NULL"},
    {"no-execute", "Entry.Functions", "execute is NULL"},
    {"name", "Entry.Texts", "name is \"Bad Name\""},
    {"null-version", "Entry.Texts", "version"},
    {"description-lines", "Entry.Texts", "more than one line"},
    {"needs", "Entry.TeacherNeeds", "teacher_needs has bits"},
    {"reserved", "Entry.TeacherNeeds", "reserved"},
    {"extension", "Entry.Extension", "a name that no header defines"},

    {"null-parameters", "Parameters.List", "parameters is NULL"},
    {"negative-count", "Parameters.List", "parameter_count"},
    {"spec-null", "Parameters.List", "parameters[1]"},
    {"spec-size", "Parameters.List", "struct_size"},
    {"spec-type", "Parameters.List", "type is 4"},
    {"spec-name-twice", "Parameters.Names", "\"count\" is there twice"},
    {"spec-null-name", "Parameters.Names", "expected a-z"},
    {"spec-help", "Parameters.Names", "more than one line"},
    {"spec-nan", "Parameters.Bounds", "a bound is not finite"},
    {"spec-bounds", "Parameters.Bounds", "\"rate\""},
    {"spec-text-bounds", "Parameters.Bounds", "only integers and reals have bounds"},
    {"spec-default", "Parameters.Defaults", "is no finite number"},
    {"spec-default-range", "Parameters.Defaults", "is above the maximum"},
    {"value-plan", "Parameters.EachValue", "count = \"9\""},
    {"value-throws", "Parameters.EachValue", "threw an exception: \"nine\""},
    {"order", "Parameters.AnyOrder", "in the opposite order"},

    {"gap", "Plan.EveryStepsAndBlocks", "T = 64, N = 7"},
    {"one-child", "Plan.EveryStepsAndBlocks", "has 1 children"},
    {"merge-twice", "Plan.EveryStepsAndBlocks", "was added twice"},
    {"unused-merge", "Plan.EveryStepsAndBlocks", "merge [1, 64]"},
    {"missing-merge", "Plan.EveryStepsAndBlocks", "no merge with that range was added"},
    {"beyond", "Plan.EveryStepsAndBlocks", "expected two or more of the steps 1 to 64"},
    {"too-many-merges", "Plan.EveryStepsAndBlocks", "more merges than 64 steps can have"},
    {"no-blocks", "Plan.EveryStepsAndBlocks", "blocks"},
    {"other-blocks", "Plan.EveryStepsAndBlocks", "gave 1 blocks"},
    {"spectrum", "Plan.EverySpectrum", "d = 0"},
    {"weights", "Plan.EverySpectrum", "with weights"},
    {"question", "Plan.EveryQuestion", "sgd, init jump, reference data, binary"},
    {"refuses", "Plan.PlansSomething", "refused every question"},
    {"no-text", "Plan.ErrorsSayWhy", "returned 10 without a text"},
    {"no-error-code", "Plan.ErrorsSayWhy", "returned 10, but error.code is 13"},
    {"unknown-code", "Plan.ErrorsSayWhy", "returned 77, expected a canonical code"},
    {"text-bytes", "Plan.ErrorsSayWhy", "error.text is no UTF-8"},
    {"throws", "Plan.NoExceptionLeaves", "not caught"},
    {"throws-int", "Plan.NoExceptionLeaves", "no std::exception"},
    {"sink-other-thread", "Plan.KeepsTheBorder", "called from another thread than plan()"},
    {"evaluate-null-objective", "Plan.KeepsTheBorder", "objective is NULL"},
    {"evaluate-small-merge", "Plan.KeepsTheBorder", "mergeplan_merge: struct_size is 8"},
    {"solve-small-options", "Plan.KeepsTheBorder", "mergeplan_solve_options: struct_size is 4"},
    {"solve-bad-gap", "Plan.KeepsTheBorder", "gap or time_limit_seconds is out of range"},
    {"solve-null-sink", "Plan.KeepsTheBorder", "planner.solve: sink is NULL"},
    {"parse-null", "Plan.KeepsTheBorder", "planner.parse_plan: path is NULL"},
    {"extension-null", "Plan.KeepsTheBorder", "name is NULL"},
    {"bad-error", "Plan.KeepsTheBorder", "the plugin's error is none"},
    {"blocks-twice", "Plan.KeepsTheBorder", "the blocks were set twice"},
    {"log-null", "Plan.LogsLines", "is NULL"},
    {"log-bytes", "Plan.LogsLines", "is no UTF-8"},
    {"log-lines", "Plan.LogsLines", "more than one line"},
    {"writes-request", "Plan.RequestUnchanged", "the request was changed"},
    {"counter", "Plan.SameRequestSamePlan", "T = 17"},
    {"cancelled-ignored", "Plan.StopsWhenCancelled", "the user wants to stop"},
    {"cancelled-code", "Plan.StopsWhenCancelled", "not with CANCELLED"},

    {"sink-ignored", "PlanErrors.SinkErrorsArePassedOn", "returned 0, expected the sink's 8"},
    {"sink-code", "PlanErrors.SinkErrorsArePassedOn", "returned 13, expected the sink's 8"},
    {"sink-throws", "PlanErrors.SinkErrorsArePassedOn", "threw an exception"},
    {"overflow", "PlanErrors.ErrorCapacity", "of error.capacity were written"},
    {"no-nul", "PlanErrors.ErrorCapacity", "no NUL within error.capacity"},
    {"writes-capacity", "PlanErrors.ErrorCapacity", "capacity or text of the caller's error"},
    {"code-by-room", "PlanErrors.ErrorCapacity", "returned 13, with more room 8"},
    {"planner-error-without-text", "PlanErrors.PlannerErrors", "without a text"},
    {"nan-plan", "PlanErrors.PredictionsThatAreNan", "no blocks were set"},
    {"nan-for-ever", "PlanErrors.PredictionsThatAreNan", "asked the planner 1001 times"},

    {"half", "Execute.TrainsEveryMerge", "is missing"},
    {"execute-refuses", "Execute.TrainsEveryMerge", "not today"},
    {"own-plans", "Execute.TrainsItsOwnPlans", "N = 9"},
    {"twice", "Execute.EachMergeOnce", "is trained already"},
    {"parent-first", "Execute.ChildrenFirst", "is not trained yet"},
    {"unknown-merge", "Execute.KeepsTheBorder", "the plan has no such merge"},
    {"empty-round", "Execute.KeepsTheBorder", "a round of 0 merges"},
    {"small-evaluation", "Execute.KeepsTheBorder", "mergeplan_evaluation: struct_size is 0"},
    {"small-result", "Execute.KeepsTheBorder", "mergeplan_train_result: struct_size is 0"},
    {"early-snapshot", "Execute.KeepsTheBorder", "runtime.snapshot"},
    {"release-unknown", "Execute.KeepsTheBorder", "snapshot 4711 is not held"},
    {"checkpoint-other-thread", "Execute.KeepsTheBorder", "another thread than execute()"},
    {"progress-2", "Execute.Progress", "expected 0 to 1"},
    {"progress-falls", "Execute.Progress", "fell from"},
    {"progress-nan", "Execute.Progress", "found nan"},
    {"progress-bytes", "Execute.LogsLines", "the text of progress is no UTF-8"},
    {"execute-log-null", "Execute.LogsLines", "is NULL"},
    {"execute-log-lines", "Execute.LogsLines", "more than one line"},
    {"snapshot-left", "Execute.SnapshotsReleased", "snapshots are still held"},
    {"writes-plan", "Execute.PlanUnchanged", "were changed"},
    {"execute-throws", "Execute.NoExceptionLeaves", "not caught"},
    {"progress-by-loss", "Execute.ResultsThatAreNan", "found nan"},
    {"nan-without-text", "Execute.ResultsThatAreNan", "without a text"},
    {"nan-half", "Execute.ResultsThatAreNan", "is missing"},
    {"nan-throws", "Execute.ResultsThatAreNan", "\"nan\""},

    {"train-ignored", "ExecuteErrors.TrainErrorsArePassedOn", "returned 0, expected"},
    {"train-code", "ExecuteErrors.TrainErrorsArePassedOn", "returned 13, expected"},
    {"train-cancelled-code", "ExecuteErrors.TrainErrorsArePassedOn", "expected the runtime's 1"},
    {"stop-ignored", "ExecuteErrors.StopsWhenCancelled", "expected at most 8"},
    {"stop-code", "ExecuteErrors.StopsWhenCancelled", "returned 10, expected CANCELLED"},
    {"stop-no-text", "ExecuteErrors.ErrorsSayWhy", "returned 1 without a text"},
    {"execute-no-text", "ExecuteErrors.ErrorsSayWhy", "returned 8 without a text"},
    {"execute-overflow", "ExecuteErrors.ErrorCapacity", "of error.capacity were written"},

    {"behind-the-table", "Versions.OldestHost", "called functions behind the end"},
    {"exact-size", "Versions.LaterHost", "another header"},
    {"reads-behind-the-request", "Versions.OldestHost", "a limit that nobody gave"},
    {"execute-exact-size", "Versions.LaterHost", "another header"},

    {"global-plan", "Threads.PlansAtTheSameTime", "while other threads asked too"},
    {"global-execute", "Threads.ExecutesAtTheSameTime", "while other threads trained too"},
};

class Mutants : public ::testing::TestWithParam<Mutant> {};

TEST_P(Mutants, ExactlyTheCheckOfTheBrokenRuleFails) {
  const ScopedVariable variable("MERGEPLAN_TEST_MUTANT", GetParam().name);
  const MutantRan ran = RunSuite(Fixture("mutant"));
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.failed, ::testing::ElementsAre(GetParam().check)) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(Rules, Mutants, ::testing::ValuesIn(kMutants), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
});

TEST(Conformance, APluginThatKeepsEveryRulePasses) {
  const MutantRan ran = RunSuite(Fixture("mutant"));
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_THAT(ran.failed, IsEmpty());
  EXPECT_THAT(ran.out, ::testing::Not(HasSubstr("SKIPPED")));
}

// Every check can fail: the mutants leave none out.
TEST(Conformance, EveryCheckHasAMutant) {
  std::set<std::string> covered;
  for (const Mutant& mutant : kMutants) covered.insert(mutant.check);
  for (const auto& check : mergeplan_conformance::Checks()) {
    EXPECT_EQ(covered.count(std::string(check.group) + "." + check.name), 1u)
        << check.group << "." << check.name;
  }
}

class Ours : public ::testing::TestWithParam<const char*> {};

TEST_P(Ours, Passes) {
  const MutantRan ran =
      RunSuite(std::string("'") + MERGEPLAN_PLUGIN_FOLDER + "/" + GetParam() + ".so'");
  EXPECT_EQ(ran.code, 0) << ran.out;
}

INSTANTIATE_TEST_SUITE_P(Plugins, Ours,
                         ::testing::Values("vanilla", "progressive", "boot", "consistency",
                                           "dp_custom", "greedy", "manual"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Conformance, PassesParametersOn) {
  const std::string manual = std::string("'") + MERGEPLAN_PLUGIN_FOLDER + "/manual.so'";
  EXPECT_EQ(RunSuite(manual + " --param merges=1-17 --gtest_filter=Execute.*").code, 0);
  // Of all T and N there is none for which this list is a plan.
  const MutantRan ran = RunSuite(manual + " --param merges=1-4,3-6");
  EXPECT_THAT(ran.failed, ::testing::ElementsAre("Plan.PlansSomething")) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr("overlap"));
}

TEST(Conformance, Misuse) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "no library"},
      {Fixture("mutant") + " --parm x=1", "unknown argument --parm"},
      {Fixture("mutant") + " --param x", "--param x: expected NAME=VALUE"},
      {Fixture("mutant") + " --param", "--param: no value"},
  };
  for (const auto& [arguments, expected] : cases) {
    const MutantRan ran = RunSuite(arguments);
    EXPECT_EQ(ran.code, 2) << arguments;
    EXPECT_THAT(ran.out, HasSubstr(expected));
  }
  const MutantRan none = RunSuite("/no/such/library.so");
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.out, HasSubstr("/no/such/library.so"));
  const MutantRan other = RunSuite(Fixture("no_symbol"));
  EXPECT_EQ(other.code, 3);
  EXPECT_THAT(other.out, HasSubstr("exports no function mergeplan_plugin_entry"));
}

}  // namespace
}  // namespace mergeplan
