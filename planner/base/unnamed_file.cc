#include "planner/base/unnamed_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/write_all.h"

namespace mergeplan {

absl::StatusOr<UnnamedFile> UnnamedFile::Create(const std::string& folder) {
  std::string name = folder + "/mergeplan-XXXXXX";
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(folder, ": no file can be made there"));
  }
  ::unlink(name.c_str());
  return UnnamedFile(folder, fd);
}

absl::StatusOr<UnnamedFile> UnnamedFile::CreateTemporary() {
  std::error_code ec;
  const std::string folder = std::filesystem::temp_directory_path(ec).string();
  if (ec) {
    return absl::FailedPreconditionError(absl::StrCat("there is no folder for temporary files (",
                                                      ec.message(), "), expected one: set TMPDIR"));
  }
  return Create(folder);
}

UnnamedFile::UnnamedFile(UnnamedFile&& other) noexcept
    : folder_(std::move(other.folder_)), fd_(std::exchange(other.fd_, -1)) {}

UnnamedFile::~UnnamedFile() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status UnnamedFile::Append(std::string_view bytes) {
  return WriteAll(fd_, bytes, absl::StrCat(folder_, ": a file there cannot be written on"));
}

absl::Status UnnamedFile::Read(std::int64_t offset, absl::Span<char> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, absl::StrCat(folder_, ": reading failed"));
    if (n == 0) {
      return absl::DataLossError(absl::StrCat(folder_, ": a temporary file there ends ", out.size(),
                                              " bytes before what was written"));
    }
    out.remove_prefix(static_cast<std::size_t>(n));
    offset += n;
  }
  return absl::OkStatus();
}

std::string UnnamedFile::path() const { return absl::StrCat("/proc/self/fd/", fd_); }

}  // namespace mergeplan
