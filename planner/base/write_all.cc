#include "planner/base/write_all.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>

namespace mergeplan {

absl::Status WriteAll(int descriptor, std::string_view bytes, std::string_view what) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::ErrnoToStatus(n < 0 ? errno : ENOSPC, std::string(what));
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return absl::OkStatus();
}

}  // namespace mergeplan
