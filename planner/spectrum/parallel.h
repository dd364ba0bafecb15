#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace mergeplan {

// The number of threads that `requested` stands for: itself where positive, else the number of
// processors.
int ThreadCount(int requested);

// Calls body(0) .. body(tasks - 1), each once, in any order on up to `threads` threads (this one
// among them), and returns when all are done. A body that answers false (out of memory) stops the
// rest: RESOURCE_EXHAUSTED. Bodies must not throw, and must write to disjoint places; the result is
// then the same for any number of threads.
absl::Status ParallelFor(int tasks, int threads, absl::FunctionRef<bool(int)> body);

}  // namespace mergeplan
