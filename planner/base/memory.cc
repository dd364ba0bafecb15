#include "planner/base/memory.h"

#include <sys/resource.h>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mergeplan {
namespace {

constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

std::uint64_t FreeOfSystem() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  std::uint64_t kilobytes = 0;
  while (file >> key >> kilobytes) {
    if (key == "MemAvailable:") return kilobytes * 1024;
    std::getline(file, unit);
  }
  return kUnknown;
}

std::uint64_t FreeOfLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnknown;
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages;
  const std::uint64_t used = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

std::string Text(double bytes) {
  constexpr double kMiB = 1 << 20;
  return bytes < 1024 * kMiB ? absl::StrFormat("%.0f MiB", bytes / kMiB)
                             : absl::StrFormat("%.1f GiB", bytes / kMiB / 1024);
}

}  // namespace

std::uint64_t AvailableMemory() { return std::min(FreeOfSystem(), FreeOfLimit()); }

absl::Status CheckMemory(std::string_view what, double bytes) {
  const double available = static_cast<double>(AvailableMemory());
  if (bytes <= available) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(std::string(what), " needs about ", Text(bytes),
                                                   " of memory, ", Text(available), " are free"));
}

std::int64_t PeakMemoryBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace mergeplan
