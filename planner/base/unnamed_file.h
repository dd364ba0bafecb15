#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mergeplan {

// A file without a name, for what need not lie in memory: it goes with its owner, and with the
// process however that ends.
class UnnamedFile {
 public:
  // In `folder`, which must exist. Errors name the folder and what the system said.
  static absl::StatusOr<UnnamedFile> Create(const std::string& folder);
  // In the folder for temporary files (TMPDIR, else /tmp).
  static absl::StatusOr<UnnamedFile> CreateTemporary();
  ~UnnamedFile();
  UnnamedFile(UnnamedFile&& other) noexcept;
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;
  UnnamedFile& operator=(UnnamedFile&&) = delete;

  absl::Status Append(std::string_view bytes);
  // Fills `out` with the bytes from `offset` on. DATA_LOSS where there are not so many.
  absl::Status Read(std::int64_t offset, absl::Span<char> out) const;

  const std::string& folder() const { return folder_; }
  int descriptor() const { return fd_; }
  // By which this process can open it once more, from its start.
  std::string path() const;

 private:
  UnnamedFile(std::string folder, int fd) : folder_(std::move(folder)), fd_(fd) {}

  std::string folder_;
  int fd_ = -1;
};

}  // namespace mergeplan
