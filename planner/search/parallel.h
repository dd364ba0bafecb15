#pragma once

#include <functional>

namespace mergeplan::search {

// Calls body(0), ..., body(count - 1) on up to `threads` threads and waits for all. The order is
// not fixed, so bodies must not depend on each other.
void ParallelFor(int threads, int count, const std::function<void(int)>& body);

// `threads` if positive, else what the machine has.
int ThreadCount(int threads);

}  // namespace mergeplan::search
