#include "planner/data/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace mergeplan {
namespace {

constexpr char kName[] = "standard input";

// Where it lies, once it does.
std::string& PathOfSpool() {
  static std::string path;
  return path;
}

absl::StatusOr<std::string> Spool() {
  std::error_code ec;
  const std::string folder = std::filesystem::temp_directory_path(ec).string();
  if (ec) {
    return absl::FailedPreconditionError(
        absl::StrCat("standard input: there is no folder for temporary files (", ec.message(),
                     "), expected one to keep the data in: set TMPDIR"));
  }
  const auto fault = [&](int error) {
    return absl::ErrnoToStatus(error,
                               absl::StrCat("standard input: cannot be kept in ", folder,
                                            ", expected room there: free some, or set TMPDIR"));
  };
  std::string name = folder + "/mergeplan-XXXXXX";
  const int file = ::mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) return fault(errno);
  ::unlink(name.c_str());
  std::vector<char> chunk(std::size_t{1} << 18);
  while (true) {
    const ssize_t n = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, "standard input: reading failed");
    if (n == 0) break;
    for (ssize_t written = 0; written < n;) {
      const ssize_t w =
          ::write(file, chunk.data() + written, static_cast<std::size_t>(n - written));
      if (w < 0 && errno == EINTR) continue;
      if (w <= 0) return fault(w < 0 ? errno : ENOSPC);
      written += w;
    }
  }
  // The descriptor stays open: it is what keeps the file.
  PathOfSpool() = absl::StrCat("/proc/self/fd/", file);
  return PathOfSpool();
}

}  // namespace

absl::StatusOr<std::string> SpoolStandardInput() {
  static const absl::StatusOr<std::string> path = Spool();
  return path;
}

std::string NameStandardInput(std::string message) {
  if (PathOfSpool().empty()) return message;
  const std::string once = absl::StrCat(kName, ": ");
  message = absl::StrReplaceAll(message, {{PathOfSpool(), kName}});
  return absl::StrReplaceAll(message, {{absl::StrCat(once, once), once}});
}

}  // namespace mergeplan
