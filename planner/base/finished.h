#pragma once

namespace mergeplan {

// A program that another one starts says that it came to its end, whatever its exit code: code that
// it loads (a plugin) may end it with exit status 0 in the middle of its work.

// The environment variable that names the file descriptor to tell it on.
inline constexpr char kFinishedVariable[] = "MERGEPLAN_FINISHED_FD";

// The last thing in main(). Does nothing where nobody asked.
void TellFinished();

}  // namespace mergeplan
