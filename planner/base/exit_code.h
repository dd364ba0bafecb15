#pragma once

namespace mergeplan {

// Exit codes of every command.
enum ExitCode : int {
  kDone = 0,
  kFailed = 1,
  kMisuse = 2,   // a flag or argument is wrong
  kStopped = 3,  // stopped early with a usable result
};

}  // namespace mergeplan
