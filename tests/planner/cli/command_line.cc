#include "tests/planner/cli/command_line.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "planner/base/file.h"

namespace mergeplan {

std::string TestFolder() {
  std::string pattern = testing::TempDir() + "mergeplan test XXXXXX";
  EXPECT_NE(mkdtemp(pattern.data()), nullptr);
  return pattern;
}

Outcome RunMergeplan(const std::string& arguments, const std::string& before) {
  const char* binary = std::getenv("MERGEPLAN_BIN");
  const std::string folder = TestFolder();
  const std::string line = before + "; '" + (binary == nullptr ? "mergeplan" : binary) + "' " +
                           arguments + " >'" + folder + "/out' 2>'" + folder + "/err' </dev/null";
  const int status = std::system(line.c_str());
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = ReadFile(folder + "/out").value_or("");
  outcome.err = ReadFile(folder + "/err").value_or("");
  std::filesystem::remove_all(folder);
  return outcome;
}

}  // namespace mergeplan
