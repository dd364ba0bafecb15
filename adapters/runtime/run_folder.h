#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/runtime/folder_lock.h"
#include "planner/runs/run_info.h"

namespace mergeplan {

// A run's folder:
//   run.toml                  what it is and how far it is
//   plan.toml (plan.npz)      the plan that it executes
//   checkpoint.npz            how far the training has come
//   result.toml, result.npz   when it is finished
// Every file is written beside and renamed. A lock keeps two programs out of one folder.
class RunFolder {
 public:
  // May a run begin (or, with `resume`, go on) here? Misuse when the folder holds a run and
  // `resume` is false, when it holds none and `resume` is true, or when it holds something else.
  // Touches nothing.
  static absl::Status Check(const std::string& path, bool resume);
  // Checks, makes the folder when it is not there, and takes it. FAILED_PRECONDITION when another
  // program works in it. Changes nothing that is in it.
  static absl::StatusOr<RunFolder> Open(const std::string& path, bool resume);
  // The run that another process has opened here, to read: takes no lock and changes nothing.
  static absl::StatusOr<RunFolder> Look(const std::string& path, bool resume);

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  // The run that is resumed.
  const std::optional<RunInfo>& previous() const { return previous_; }

  absl::Status WriteInfo(const RunInfo& info) const;

 private:
  RunFolder() = default;
  std::string path_;
  std::optional<FolderLock> lock_;
  std::optional<RunInfo> previous_;
};

}  // namespace mergeplan
