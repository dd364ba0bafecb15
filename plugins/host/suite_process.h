#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mergeplan {

// How a child process went in which checks of the conformance suite ran.
struct SuiteRun {
  enum class End { kExited, kSignalled, kDeadline };
  End end = End::kExited;
  int number = 0;          // exit status or signal
  std::string last_words;  // the last line on stderr
};

// Runs `program` with `arguments` and "--events FD" in a process group of its own. Every line that
// it writes to that descriptor goes to `line` at once. Its stdin and stdout lead to nowhere. The
// group is killed when the program has ended, `seconds` are over, or this process dies.
// RESOURCE_EXHAUSTED where no child can be made.
absl::StatusOr<SuiteRun> RunSuite(const std::string& program,
                                  const std::vector<std::string>& arguments, double seconds,
                                  const std::function<void(const std::string&)>& line);

}  // namespace mergeplan
