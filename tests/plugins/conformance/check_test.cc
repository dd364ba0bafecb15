// `mergeplan-plugins check`: manifest, loading and the suite in child processes.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "plugins/host/check.h"
#include "tests/plugins/plugin_folder.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kMutantManifest[] = R"(format = 1
name = "mutant"
version = "0.1"
description = "Keeps every rule"
library = "mutant.so"
abi_major = 1
abi_minor = 0

[[parameters]]
name = "count"
type = "integer"
default = 3
minimum = 2
maximum = 9
help = "help"

[[parameters]]
name = "rate"
type = "real"
default = 0.5
minimum = 0
maximum = 1
help = "help"
)";

struct Ran {
  int code;
  std::string out, err;
};

Ran Check(const std::string& arguments) {
  const PluginFolder folder;
  const std::string command = std::string("'") + MERGEPLAN_PLUGINS_TOOL + "' check " + arguments +
                              " >'" + folder.File("out") + "' 2>'" + folder.File("err") + "'";
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): our own words
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Slurp(folder.File("out")),
          Slurp(folder.File("err"))};
}

class CheckMutant : public ::testing::Test {
 protected:
  CheckMutant() {
    library_ = folder_.CopyLibrary("mutant");
    folder_.Write("mutant.toml", kMutantManifest);
  }

  // The checks by name: result and text.
  std::map<std::string, std::pair<std::string, std::string>> Results(
      const std::string& mutant, const std::string& flags = "--seconds 60") {
    const ScopedVariable variable("MERGEPLAN_TEST_MUTANT", mutant);
    const Ran ran = Check("'" + library_ + "' --json " + flags);
    EXPECT_THAT(ran.err, IsEmpty());
    const auto json = nlohmann::json::parse(ran.out);
    std::map<std::string, std::pair<std::string, std::string>> results;
    std::map<std::string, int> counts = {{"passed", 0}, {"failed", 0}, {"skipped", 0}};
    for (const auto& check : json["checks"]) {
      EXPECT_FALSE(check["rule"].get<std::string>().empty());
      results[check["name"]] = {check["result"], check["text"]};
      ++counts[check["result"]];
    }
    for (const auto& [result, count] : counts) EXPECT_EQ(json[result], count) << result;
    EXPECT_EQ(json["checks"].size(), results.size()) << "every check once";
    EXPECT_EQ(ran.code, counts["failed"] == 0 ? 0 : 1);
    return results;
  }

  PluginFolder folder_;
  std::string library_;
};

TEST_F(CheckMutant, AllPassed) {
  for (const auto& [name, result] : Results("")) EXPECT_EQ(result.first, "passed") << name;
  const Ran ran = Check("mutant --plugin-dir '" + folder_.path() + "'");
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, AllOf(StartsWith("passed   Manifest.Reads\n"),
                             HasSubstr("\npassed   Execute.ChildrenFirst\n"),
                             HasSubstr("mutant: 50 passed, 0 failed, 0 skipped")));
}

TEST_F(CheckMutant, AFindingIsOneLine) {
  const ScopedVariable variable("MERGEPLAN_TEST_MUTANT", "parent-first");
  const Ran ran = Check("'" + folder_.File("mutant.toml") + "'");
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(
      ran.out,
      AllOf(HasSubstr("\nfailed   Execute.ChildrenFirst: expected that a merge is trained "
                      "after its children; found: T = 6, a chain: "),
            HasSubstr("is not trained yet"), HasSubstr("mutant: 48 passed, 1 failed, 1 skipped")));
}

TEST_F(CheckMutant, ACrashIsAFindingAndHidesNothing) {
  const auto results = Results("crash");
  // Where it happened, and every check that does not ask for that.
  EXPECT_EQ(results.at("Plan.EveryStepsAndBlocks").first, "failed");
  EXPECT_THAT(results.at("Plan.EveryStepsAndBlocks").second,
              AllOf(HasSubstr("crashed (signal 11, Segmentation fault)"),
                    HasSubstr("in plan() asked for T = 64, N = 1")));
  for (const char* name : {"Entry.StaticData", "Parameters.EachValue", "PlanErrors.ErrorCapacity",
                           "Execute.TrainsEveryMerge", "ExecuteErrors.ErrorCapacity",
                           "Versions.LaterHost", "Threads.ExecutesAtTheSameTime"}) {
    EXPECT_EQ(results.at(name).first, "passed") << name;
  }
  const auto execute = Results("execute-crash");
  EXPECT_THAT(execute.at("Execute.ChildrenFirst").second, HasSubstr("in execute() of a plan with"));
  // The one of its group that does not crash.
  EXPECT_EQ(execute.at("Execute.TrainsItsOwnPlans").first, "passed");
}

TEST_F(CheckMutant, EndingTheProcessIsAFinding) {
  const auto results = Results("exit");
  EXPECT_THAT(results.at("Plan.EveryStepsAndBlocks").second,
              HasSubstr("ended the process (exit status 0)"));
  EXPECT_EQ(results.at("Execute.TrainsEveryMerge").first, "passed");
  const auto at_exit = Results("crash-at-exit");
  EXPECT_EQ(at_exit.at("Plan.EveryStepsAndBlocks").first, "passed");
  EXPECT_EQ(at_exit.at("Plan.AtExit").first, "failed");
  EXPECT_THAT(at_exit.at("Plan.AtExit").second, HasSubstr("signal 11"));
}

TEST_F(CheckMutant, AnEndlessLoopIsAFinding) {
  const auto results = Results("endless", "--seconds 4");
  EXPECT_EQ(results.at("Plan.EveryStepsAndBlocks").first, "failed");
  EXPECT_THAT(results.at("Plan.EveryStepsAndBlocks").second,
              HasSubstr("was still running after 4 seconds in plan() asked for T = 64, N = 1"));
  EXPECT_EQ(results.at("Plan.LogsLines").first, "skipped");
  EXPECT_THAT(results.at("Plan.LogsLines").second, HasSubstr("the time of its group was spent"));
  EXPECT_EQ(results.at("Execute.TrainsEveryMerge").first, "passed");
}

// A process that the plugin leaves behind holds the pipes: the check goes on, and it is killed.
TEST_F(CheckMutant, WhatThePluginLeavesBehindIsKilled) {
  const std::string file = folder_.File("pid");
  const ScopedVariable variable("MERGEPLAN_TEST_PID_FILE", file);
  EXPECT_EQ(Results("leaves-a-process").at("Plan.EveryStepsAndBlocks").first, "passed");
  const std::string pid = Slurp(file);
  ASSERT_FALSE(pid.empty());
  // Gone, or dead and not yet buried by whoever inherited it. The kill is sent before the check
  // ends but may take effect a little later.
  bool alive = true;
  for (int k = 0; k < 500 && alive; ++k) {
    const std::string stat = Slurp("/proc/" + pid + "/stat");
    alive = !stat.empty() && stat.find(") Z") == std::string::npos &&
            stat.find(") X") == std::string::npos;
    if (alive) ::usleep(10000);
  }
  EXPECT_FALSE(alive) << pid;
}

TEST_F(CheckMutant, WhatThePluginPrintsIsNoResult) {
  for (const auto& [name, result] : Results("prints")) EXPECT_EQ(result.first, "passed") << name;
}

TEST_F(CheckMutant, AnEntryThatEndsTheProcessIsSaidOnce) {
  const auto results = Results("entry-crash");
  EXPECT_THAT(results.at("Library.Loads").second,
              AllOf(HasSubstr(library_), HasSubstr("crashed while it was being loaded")));
  EXPECT_EQ(results.at("Entry.StaticData").first, "failed");
  EXPECT_EQ(results.at("Entry.Size").first, "skipped");
  EXPECT_EQ(results.at("Threads.PlansAtTheSameTime").first, "skipped");
}

TEST_F(CheckMutant, ManifestsAreChecked) {
  // None: the library is checked all the same.
  std::filesystem::remove(folder_.File("mutant.toml"));
  auto results = Results("");
  EXPECT_EQ(results.at("Manifest.Reads").first, "failed");
  EXPECT_THAT(results.at("Manifest.Reads").second, HasSubstr("mutant.toml is missing"));
  EXPECT_EQ(results.at("Library.Loads").first, "skipped");
  EXPECT_EQ(results.at("Execute.TrainsEveryMerge").first, "passed");

  std::string text = kMutantManifest;
  folder_.Write("mutant.toml", "format = 1\nnmae = \"mutant\"\n");
  results = Results("");
  EXPECT_THAT(results.at("Manifest.Reads").second, HasSubstr("unknown key \"nmae\""));

  folder_.Write("mutant.toml", text.replace(text.find("abi_major = 1"), 13, "abi_major = 2"));
  results = Results("");
  EXPECT_EQ(results.at("Manifest.Reads").first, "passed");
  EXPECT_THAT(results.at("Manifest.FitsThisHost").second, HasSubstr("is for ABI 2.0"));

  text = kMutantManifest;
  folder_.Write("mutant.toml", text.replace(text.find("\"0.1\""), 5, "\"0.2\""));
  results = Results("");
  EXPECT_EQ(results.at("Library.Loads").first, "failed");
  EXPECT_THAT(results.at("Library.Loads").second, HasSubstr("version is \"0.1\" in the library"));
  EXPECT_EQ(results.at("Plan.EverySpectrum").first, "passed");
}

TEST_F(CheckMutant, LibrariesThatAreNone) {
  const std::string bytes = Slurp(library_);
  folder_.Write("mutant.so", bytes.substr(0, bytes.size() / 2));
  auto results = Results("");
  EXPECT_THAT(results.at("Library.Loads").second, HasSubstr("truncated library"));
  EXPECT_EQ(results.at("Entry.StaticData").first, "skipped");

  std::filesystem::remove(library_);
  std::filesystem::copy_file(PluginFolder::FixtureFolder() / "no_symbol.so", library_);
  results = Results("");
  EXPECT_THAT(results.at("Library.Loads").second, HasSubstr("exports no function"));
  EXPECT_EQ(results.at("Threads.PlansAtTheSameTime").first, "skipped");

  // Without a manifest only the suite can say it.
  std::filesystem::remove(folder_.File("mutant.toml"));
  results = Results("");
  EXPECT_EQ(results.at("Entry.StaticData").first, "skipped");

  std::filesystem::remove(library_);
  folder_.Write("mutant.toml", kMutantManifest);
  const Ran gone = Check("mutant --plugin-dir '" + folder_.path() + "'");
  EXPECT_EQ(gone.code, 1);
  EXPECT_THAT(gone.out, HasSubstr("no such library; the manifest names it"));
}

TEST_F(CheckMutant, ParametersArePassedOn) {
  EXPECT_EQ(Results("", "--param count=2").at("Plan.EverySpectrum").first, "passed");
  // The mutant fails with count = 9 only; the default is 3.
  const auto results = Results("value-plan", "--param count=9");
  EXPECT_EQ(results.at("Plan.EverySpectrum").first, "failed");
}

TEST_F(CheckMutant, Misuse) {
  const std::string library = "'" + library_ + "'";
  const std::pair<std::string, const char*> cases[] = {
      {"", "NAME"},
      {"''", "NAME: is empty"},
      {"nothing-like-it", "plugin nothing-like-it: not found"},
      {"/no/such/library.so", "/no/such/library.so: no such plugin library"},
      {library + " --seconds 0", "--seconds"},
      {library + " --seconds nan", "--seconds"},
      {library + " --param count", "--param count: expected NAME=VALUE"},
      {library + " --param count=2 --param count=3", "the name is given twice"},
      {library + " --param count=1", "found \"1\", expected an integer from 2 to 9"},
      {library + " --param cuont=2", "unknown parameter \"cuont\", expected one of count, rate"},
  };
  for (const auto& [arguments, expected] : cases) {
    const Ran ran = Check(arguments);
    EXPECT_EQ(ran.code, 2) << arguments << ran.out;
    EXPECT_THAT(ran.err, HasSubstr(expected));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_THAT(ran.out, IsEmpty());
  }
}

// What the caller's environment says of GoogleTest is about the caller's tests.
TEST_F(CheckMutant, TheEnvironmentOfOtherTestsDoesNotMatter) {
  const ScopedVariable filter("GTEST_FILTER", "Nothing.*");
  const ScopedVariable shards("GTEST_TOTAL_SHARDS", "50");
  const ScopedVariable shard("GTEST_SHARD_INDEX", "1");
  for (const auto& [name, result] : Results("")) EXPECT_EQ(result.first, "passed") << name;
}

}  // namespace
}  // namespace mergeplan
