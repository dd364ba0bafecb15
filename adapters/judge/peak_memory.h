#pragma once

#include <cstdint>

namespace mergeplan::judge {

// Lets the process's peak begin anew, so that it can be told for one of several runs. False where
// the system has no such thing (then the peak is that of all before, too).
bool ResetPeakMemory();
// The most memory since then, or since the process began. 0 where nobody knows.
std::int64_t PeakMemorySinceReset();

}  // namespace mergeplan::judge
