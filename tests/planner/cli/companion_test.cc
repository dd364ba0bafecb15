// The programs in libexec as `mergeplan` starts them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "planner/base/file.h"
#include "planner/data/npy.h"
#include "planner/data/npz.h"
#include "tests/planner/cli/command_line.h"

namespace mergeplan {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A folder with a shell script in place of one of them.
std::string Libexec(const std::string& program, const std::string& script) {
  const std::string folder = TestFolder();
  const std::string path = folder + "/" + program;
  EXPECT_TRUE(WriteFileAtomically(path, "#!/bin/bash\n" + script + "\n").ok());
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return "export MERGEPLAN_LIBEXEC='" + folder + "'";
}

// What the programs do last, here first; and what they do when they look after signals themselves.
const std::string kFinished = "echo 1 >&$MERGEPLAN_FINISHED_FD; ";
const std::string kCatches = "echo s >&$MERGEPLAN_FINISHED_FD; ";

// A plugin that ends the program in the middle of its work must not look like success.
TEST(Companion, AnEndBeforeTheEndIsAnError) {
  for (const int status : {0, 3}) {
    const Outcome run =
        RunMergeplan("distill", Libexec("mergeplan-torch", "exit " + std::to_string(status)));
    EXPECT_EQ(run.code, 1);
    EXPECT_THAT(run.err, AllOf(HasSubstr("exit status " + std::to_string(status)),
                               HasSubstr("before it had finished"), HasSubstr("plugins check")));
  }
}

TEST(Companion, PassesArgumentsAndTheExitCodeOn) {
  const Outcome run = RunMergeplan(
      "distill --a 'b c'", Libexec("mergeplan-torch", kFinished + "echo \"$1|$2|$3\"; exit 3"));
  EXPECT_EQ(run.code, 3);
  EXPECT_EQ(run.out, "distill|--a|b c\n");
  EXPECT_EQ(
      RunMergeplan("plugins list", Libexec("mergeplan-plugins", kFinished + "echo \"$1|$2\"")).out,
      "list|\n");
}

TEST(Companion, ASignalIsSaidWithoutAClaimThatSomethingWasWritten) {
  const Outcome distill =
      RunMergeplan("distill", Libexec("mergeplan-torch", kCatches + "kill -INT $$"));
  EXPECT_EQ(distill.code, 1);
  EXPECT_THAT(distill.err, AllOf(HasSubstr("mergeplan-torch was ended by signal 2 (Interrupt)"),
                                 HasSubstr("if the folder of the run has a run.toml"),
                                 Not(HasSubstr("is kept"))));
  const Outcome plugins = RunMergeplan("plugins list", Libexec("mergeplan-plugins", "kill -9 $$"));
  EXPECT_EQ(plugins.code, 1);
  EXPECT_THAT(plugins.err, AllOf(HasSubstr("signal 9 (Killed)"), HasSubstr("run the command again"),
                                 Not(HasSubstr("--resume"))));
}

// Libraries are loaded for a second and more before a program can look after signals.
TEST(Companion, AStopWhileItStartsIsAStop) {
  for (const char* signal : {"INT", "TERM"}) {
    const std::string script = std::string("kill -") + signal + " $$";
    const Outcome bench = RunMergeplan("bench", Libexec("mergeplan-torch", script));
    EXPECT_EQ(bench.code, 3) << signal;
    EXPECT_THAT(bench.err, AllOf(HasSubstr("mergeplan bench: stopped by signal"),
                                 HasSubstr("nothing was written, run the command again"),
                                 Not(HasSubstr("before it could"))));
    // Of a run that had not begun there is nothing to use.
    const Outcome distill = RunMergeplan("distill", Libexec("mergeplan-torch", script));
    EXPECT_EQ(distill.code, 1) << signal;
    EXPECT_THAT(distill.err,
                AllOf(HasSubstr("mergeplan distill: stopped by a signal before the training began"),
                      HasSubstr("nothing was written, run the same command again")));
    const Outcome again = RunMergeplan("distill --resume -o x", Libexec("mergeplan-torch", script));
    EXPECT_EQ(again.code, 3) << signal;
    EXPECT_THAT(again.err, HasSubstr("go on with --resume"));
  }
  EXPECT_EQ(RunMergeplan("bench", Libexec("mergeplan-torch", "kill -9 $$")).code, 1);
}

TEST(Companion, OneThatIsMissingIsNamedWithWhereItComesFrom) {
  const std::string empty = "export MERGEPLAN_LIBEXEC='" + TestFolder() + "'";
  const Outcome distill = RunMergeplan("distill", empty);
  EXPECT_EQ(distill.code, 1);
  EXPECT_THAT(distill.err, AllOf(HasSubstr("mergeplan-torch cannot be run (No such file"),
                                 HasSubstr("builds that have LibTorch")));
  EXPECT_THAT(RunMergeplan("plugins list", empty).err,
              AllOf(HasSubstr("mergeplan-plugins cannot be run"), HasSubstr("every build")));
}

TEST(Companion, AnEmptyValueIsMisuseBeforeItIsStarted) {
  const Outcome run =
      RunMergeplan("distill --strategy= --resume", Libexec("mergeplan-torch", "echo started"));
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("--strategy=: is empty"));
}

// `analyze --vae` across the border: what stands for mergeplan-torch gives an .npy on its standard
// output.
class Encoded : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<double> values;
    for (int i = 0; i < 40 * 3; ++i) values.push_back(std::sin(i * i * 0.7));
    NpzWriter npz;
    npz.Add("z", {40, 3}, values);
    ASSERT_TRUE(npz.Write(folder_ + "/z.npz").ok());
    ASSERT_TRUE(
        WriteFileAtomically(folder_ + "/z.npy", NpyHeaderBytes("<f8", {40, 3}) + Bytes(values))
            .ok());
  }
  static std::string Bytes(const std::vector<double>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)};
  }
  Outcome Analyze(const std::string& script, const std::string& more = "") {
    return RunMergeplan("analyze pictures --vae v --json " + more,
                        "cd '" + folder_ + "'; " + Libexec("mergeplan-torch", script));
  }
  static nlohmann::json Said(const Outcome& run) {
    EXPECT_EQ(run.code, 0) << run.err;
    nlohmann::json out = nlohmann::json::parse(run.out);
    for (const char* key : {"source", "seconds"}) out.erase(key);
    return out;
  }
  const std::string folder_ = TestFolder();
};

TEST_F(Encoded, AnalyzesWhatTheChildGives) {
  const Outcome run = Analyze("cat '" + folder_ + "/z.npy'; " + kFinished);
  EXPECT_EQ(Said(run), Said(RunMergeplan("analyze '" + folder_ + "/z.npy' --json")));
  EXPECT_THAT(run.out, HasSubstr("pictures encoded by v"));
  // The words that it is started with.
  const Outcome words = Analyze("echo \"$@\" >&2; exit 1; ",
                                "--size 8 --scale 0:1 --limit 9 --raw "
                                "--tile 64 --threads 1 --shard 2/3 --array a --device cuda:1");
  EXPECT_THAT(words.err,
              AllOf(HasSubstr("encode --for analyze -o - --content mean --vae=v --size=8 "
                              "--scale=0:1 --array=a --device=cuda:1 --limit=9 --tile=64 "
                              "--threads=1 --shard=2/3 --most-dimensions="),
                    HasSubstr("--raw -- pictures\n")));
}

TEST_F(Encoded, WhatTheChildSaysIsNotSaidTwice) {
  const Outcome failed = Analyze("echo 'mergeplan analyze: no' >&2; " + kFinished + "exit 1");
  EXPECT_EQ(failed.code, 1);
  EXPECT_EQ(failed.err, "mergeplan analyze: no\n");
  EXPECT_EQ(Analyze(kFinished + "exit 2").code, 2);
  EXPECT_EQ(Analyze(kFinished + "exit 3").code, 3);
  const Outcome killed = Analyze("kill -9 $$");
  EXPECT_EQ(killed.code, 1);
  EXPECT_THAT(killed.err, AllOf(HasSubstr("mergeplan analyze: mergeplan-torch was ended by"),
                                HasSubstr("nothing is kept")));
  // Success with half of what the header says.
  const Outcome half = Analyze("head -c 300 '" + folder_ + "/z.npy'; " + kFinished);
  EXPECT_EQ(half.code, 1);
  EXPECT_THAT(half.err, AllOf(HasSubstr("pictures encoded by v"), Not(HasSubstr("/proc/"))));
}

TEST_F(Encoded, CtrlCIsTheChildsFirst) {
  const Outcome run =
      Analyze("trap '" + kFinished + "exit 3' INT; kill -INT $PPID; sleep 20 & wait");
  EXPECT_EQ(run.code, 3);
  EXPECT_EQ(run.err, "");
}

}  // namespace
}  // namespace mergeplan
