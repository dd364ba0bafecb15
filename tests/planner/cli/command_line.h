#pragma once

#include <string>

namespace mergeplan {

// What a command did.
struct Outcome {
  int code = -1;    // exit code; 128 + n where signal n ended it
  std::string out;  // stdout
  std::string err;  // stderr
};

// Runs `mergeplan ARGUMENTS` (a shell line) with the binary under test, after the shell command
// `before`, such as a ulimit.
Outcome RunMergeplan(const std::string& arguments, const std::string& before = ":");

// A new folder for one test, with a space in its name.
std::string TestFolder();

}  // namespace mergeplan
