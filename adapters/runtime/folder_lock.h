#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace mergeplan {

// Keeps two programs out of one folder, until it goes.
class FolderLock {
 public:
  // Takes PATH/lock and removes what is half-written: nobody else writes there now, so it stays so.
  // `whose` is for errors: "run". PERMISSION_DENIED where the lock cannot be opened,
  // FAILED_PRECONDITION when another program works in the folder.
  static absl::StatusOr<FolderLock> Take(const std::string& path, std::string_view whose);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  explicit FolderLock(int file) : file_(file) {}
  int file_;
};

}  // namespace mergeplan
