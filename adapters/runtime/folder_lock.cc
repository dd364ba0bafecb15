#include "adapters/runtime/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/leftover.h"

namespace mergeplan {

namespace fs = std::filesystem;

absl::StatusOr<FolderLock> FolderLock::Take(const std::string& path, std::string_view whose) {
  const std::string lock = path + "/lock";
  FolderLock out(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  std::error_code error;
  if (out.file_ < 0) {
    const char* reason = std::strerror(errno);
    return absl::PermissionDeniedError(
        absl::StrCat(lock, ": cannot be opened for writing (", reason, "), expected the ",
                     std::string(whose), "'s lock file; ",
                     fs::is_directory(lock, error) ? "remove the folder of that name"
                                                   : "make the folder writable",
                     ", or give another folder by -o"));
  }
  if (::flock(out.file_, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("-o ", path,
                     ": another program is working in this folder; wait until it has finished, or "
                     "give another folder"));
  }
  std::vector<fs::path> half_written;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (IsHalfWritten(entry.path().filename().string())) half_written.push_back(entry.path());
  }
  for (const fs::path& file : half_written) fs::remove_all(file, error);
  return out;
}

FolderLock::FolderLock(FolderLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FolderLock::~FolderLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace mergeplan
