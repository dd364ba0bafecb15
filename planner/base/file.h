#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan {

// Reads a whole file. Errors name the path and what the system said (NOT_FOUND, PERMISSION_DENIED,
// …); a folder is INVALID_ARGUMENT, and so is a pipe or a device that gives more than 1 GiB.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Replaces `path` by `bytes`: written beside it, synced, renamed over it and the folder synced, so
// that a reader sees the old file or the new one, never half of either. The folder must exist. The
// permissions of a replaced file are kept, a symbolic link is followed. What is no regular file (a
// pipe, /dev/stdout) is written to as it is. A process that is killed while it writes may leave
// `path`.tmp-PID-K behind. Errors name `path` and what the system said; the old file then stands.
absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes);

// The same for what is written piece by piece, so that large files need not lie in memory.
class AtomicFile {
 public:
  // Errors as of WriteFileAtomically.
  static absl::StatusOr<AtomicFile> Create(const std::string& path);
  // What was not committed is gone, and the old file stands.
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  AtomicFile& operator=(AtomicFile&&) = delete;

  absl::Status Append(std::string_view bytes);
  // Syncs, renames and closes; nothing may follow.
  absl::Status Commit();

 private:
  AtomicFile() = default;

  std::string path_;    // as the caller says it
  std::string target_;  // behind a symbolic link
  std::string beside_;  // empty where the target is no regular file
  int fd_ = -1;
};

// mkdir -p.
absl::Status MakeDirectories(const std::string& path);

// SHA-256 in lower-case hexadecimal digits.
std::string Sha256(std::string_view bytes);
// The same of a file's content, read in pieces.
absl::StatusOr<std::string> Sha256OfFile(const std::string& path);

}  // namespace mergeplan
