// The programs in libexec as `mergeplan` starts them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "planner/base/file.h"
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

// What the programs do last, here first.
const std::string kFinished = "echo 1 >&$MERGEPLAN_FINISHED_FD; ";

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
  const Outcome distill = RunMergeplan("distill", Libexec("mergeplan-torch", "kill -INT $$"));
  EXPECT_EQ(distill.code, 1);
  EXPECT_THAT(distill.err, AllOf(HasSubstr("mergeplan-torch was ended by signal 2 (Interrupt)"),
                                 HasSubstr("if the folder of the run has a run.toml"),
                                 Not(HasSubstr("is kept"))));
  const Outcome plugins = RunMergeplan("plugins list", Libexec("mergeplan-plugins", "kill -9 $$"));
  EXPECT_EQ(plugins.code, 1);
  EXPECT_THAT(plugins.err, AllOf(HasSubstr("signal 9 (Killed)"), HasSubstr("run the command again"),
                                 Not(HasSubstr("--resume"))));
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

}  // namespace
}  // namespace mergeplan
