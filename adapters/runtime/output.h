#pragma once

namespace mergeplan {

// What plugins print goes to stderr, so that stdout holds results only: DivertStdout at the start
// of a command, RestoreStdout before its results are printed. Twice is once.
void DivertStdout();
void RestoreStdout();

}  // namespace mergeplan
