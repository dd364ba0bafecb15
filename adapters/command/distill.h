#pragma once

#include "adapters/runtime/arguments.h"

namespace mergeplan {

struct DistillOutput {
  bool quiet = false;  // no progress
  bool json = false;   // one JSON object on stdout instead of the table
};

// `mergeplan distill`: makes or resumes the run, lets its strategy plugin drive the executor,
// writes the run's folder and prints one line of figures. Returns the exit code: 0 done, 1 failed,
// 2 misuse, 3 stopped by a signal with a run that can be resumed. Errors are one line on stderr.
int RunDistill(const DistillArguments& arguments, const DistillOutput& output);

}  // namespace mergeplan
