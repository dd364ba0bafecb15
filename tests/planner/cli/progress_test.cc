// The line of progress: on a terminal only, on stderr only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "tests/planner/cli/command_line.h"

namespace mergeplan {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Hard enough to be at it for a while: a proof of optimality takes half a minute where that of 128
// steps takes 2 s.
std::vector<std::string> HardProblem() {
  std::string list = "0.5";
  for (int k = 1; k < 128; ++k) absl::StrAppend(&list, ",", 0.5 * std::pow(4, k / 127.0));
  return {"plan",   "--variances", list,  "-T",    "256", "--schedule",
          "cosine", "-s",          "1.6", "--gap", "0"};
}

struct TerminalOutcome {
  int code = -1;
  std::string terminal;  // what came on stderr, a terminal
  std::string out;       // stdout, a file
};

// Runs the program with a terminal for its stderr; sends it SIGINT once it has written `until`,
// where that is not empty.
TerminalOutcome RunOnTerminal(std::vector<std::string> arguments, const std::string& until = "") {
  const char* binary = std::getenv("MERGEPLAN_BIN");
  arguments.insert(arguments.begin(), binary == nullptr ? "mergeplan" : binary);
  const std::string folder = TestFolder();
  const std::string out = folder + "/out";
  int terminal = -1;
  winsize size{};
  size.ws_col = 120;
  size.ws_row = 30;
  std::fflush(nullptr);  // or the child would write what stands in this process's buffers
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    if (freopen(out.c_str(), "w", stdout) == nullptr) _exit(126);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  TerminalOutcome outcome;
  bool sent = until.empty();
  char buffer[4096];
  while (true) {
    const ssize_t got = read(terminal, buffer, sizeof buffer);
    if (got <= 0) break;  // EIO where the child has gone
    outcome.terminal.append(buffer, static_cast<std::size_t>(got));
    if (!sent && outcome.terminal.find(until) != std::string::npos) {
      kill(child, SIGINT);
      sent = true;
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  close(terminal);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = ReadFile(out).value_or("");
  return outcome;
}

// Both go by what is on the terminal, not by the clock.
TEST(Progress, IsOneLineThatIsTakenAwayAtTheEnd) {
  const TerminalOutcome run = RunOnTerminal(HardProblem(), "gap");
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.terminal, AllOf(HasSubstr("objective"), HasSubstr("no plan below"),
                                  HasSubstr("gap"), testing::EndsWith("\r\033[K")));
  EXPECT_EQ(run.terminal.find('\n'), std::string::npos) << run.terminal;
  EXPECT_EQ(run.out.find('\r'), std::string::npos);
}

TEST(Progress, CtrlCGivesTheBestPlanSoFar) {
  const TerminalOutcome run = RunOnTerminal(HardProblem(), "objective");
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.out, AllOf(HasSubstr("status interrupted"), HasSubstr("stopped early")));
}

TEST(Progress, TheTimeLimitIsSaid) {
  std::vector<std::string> problem = HardProblem();
  problem.insert(problem.end(), {"--time-limit", "0.5"});
  const TerminalOutcome run = RunOnTerminal(problem);
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.terminal, testing::EndsWith("\r\033[K"));
  EXPECT_THAT(run.out, HasSubstr("status time_limit"));
}

TEST(Progress, NamesWhatOfSeveralIsSearched) {
  const TerminalOutcome run = RunOnTerminal(
      {"plan", "--variances", "0.3,0.7,1.4,2", "-T", "8,16", "--schedule", "cosine", "-s", "1"});
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.terminal,
              AllOf(HasSubstr("1 of 2, cosine, 8 steps"), HasSubstr("2 of 2, cosine, 16 steps")));
}

TEST(Progress, IsSilentWhereNobodyLooksOrWantsIt) {
  for (const char* flag : {"--json", "--quiet"}) {
    std::vector<std::string> problem = HardProblem();
    problem.insert(problem.end(), {"--time-limit", "0.3", flag});
    const TerminalOutcome run = RunOnTerminal(problem);
    EXPECT_EQ(run.code, 3);
    EXPECT_EQ(run.terminal, "") << flag;
    EXPECT_NE(run.out, "");
  }
  // stderr is a file here.
  std::string line;
  for (const std::string& word : HardProblem()) line += word + " ";
  const Outcome run = RunMergeplan(line + "--time-limit 0.3");
  EXPECT_EQ(run.code, 3);
  EXPECT_EQ(run.err, "");
}

}  // namespace
}  // namespace mergeplan
