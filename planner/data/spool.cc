#include "planner/data/spool.h"

#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/base/unnamed_file.h"

namespace mergeplan {
namespace {

constexpr char kName[] = "standard input";

// Path and name.
std::vector<std::pair<std::string, std::string>>& Names() {
  static std::vector<std::pair<std::string, std::string>> names;
  return names;
}

absl::StatusOr<std::string> Spool() {
  const auto fault = [](const absl::Status& status) {
    return absl::Status(status.code(),
                        absl::StrCat(kName, ": cannot be kept (", status.message(),
                                     "), expected room there: free some, or set TMPDIR"));
  };
  // Never closed: the descriptor is what keeps the file.
  static absl::StatusOr<UnnamedFile> file = UnnamedFile::CreateTemporary();
  if (!file.ok()) return fault(file.status());
  std::vector<char> chunk(std::size_t{1} << 18);
  while (true) {
    const ssize_t n = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, absl::StrCat(kName, ": reading failed"));
    if (n == 0) break;
    const absl::Status put = file->Append({chunk.data(), static_cast<std::size_t>(n)});
    if (!put.ok()) return fault(put);
  }
  NameSpool(file->path(), kName);
  return file->path();
}

}  // namespace

absl::StatusOr<std::string> SpoolStandardInput() {
  static const absl::StatusOr<std::string> path = Spool();
  return path;
}

void NameSpool(const std::string& path, const std::string& name) {
  Names().emplace_back(path, name);
}

std::string NameSpooled(std::string message) {
  for (const auto& [path, name] : Names()) {
    const std::string once = absl::StrCat(name, ": ");
    message = absl::StrReplaceAll(message, {{path, name}});
    message = absl::StrReplaceAll(message, {{absl::StrCat(once, once), once}});
  }
  return message;
}

}  // namespace mergeplan
