#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace mergeplan {

// Bytes that this process can still take: the least of what the system has to give without swapping
// (MemAvailable of /proc/meminfo) and what is left of the limit on the address space (RLIMIT_AS).
// The largest number where neither can be read.
std::uint64_t AvailableMemory();

// RESOURCE_EXHAUSTED, "WHAT needs about 6.0 GiB of memory, 2.1 GiB are free", where `bytes` is more
// than that: said before the work, which the system might else end without a word.
absl::Status CheckMemory(std::string_view what, double bytes);

// The most memory that this process has had so far.
std::int64_t PeakMemoryBytes();

}  // namespace mergeplan
