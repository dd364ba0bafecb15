#include "adapters/runtime/run_folder.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "adapters/runtime/arguments.h"
#include "planner/base/file.h"
#include "planner/base/leftover.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

namespace fs = std::filesystem;

// What may lie in a folder in which a run was about to begin.
bool IsOfABeginning(const std::string& name) {
  return absl::StartsWith(name, "plan.") || absl::StartsWith(name, "plan-") || IsLeftover(name);
}

// What only a run that had its run.toml leaves.
bool IsOfATrainedRun(const std::string& name) {
  return name == "checkpoint.npz" || name == "checkpoint.safetensors" || name == "snapshots" ||
         name == "student" || name == "result.toml" || name == "result.npz" ||
         name == "merges.csv" || name == "losses.csv" || absl::StartsWith(name, "events.out.");
}

}  // namespace

absl::Status RunFolder::Check(const std::string& path, bool resume) {
  std::error_code unknown;
  if (fs::exists(path, unknown) && !fs::is_directory(path, unknown)) {
    return Misuse(
        absl::StrCat("-o ", path, ": is a file, expected the folder of a run; give another name"));
  }
  const std::string run_file = path + "/run.toml";
  const bool has_run = access(run_file.c_str(), F_OK) == 0;
  if (!has_run) {
    std::error_code unreadable;
    for (const auto& entry : fs::directory_iterator(path, unreadable)) {
      const std::string name = entry.path().filename().string();
      if (!IsOfATrainedRun(name)) continue;
      return Misuse(
          absl::StrCat("-o ", path, ": holds ", name,
                       " of a run but not its run.toml, without which the run can neither go on "
                       "nor be reported; "
                       "nothing was changed; bring run.toml back, or give another folder"));
    }
  }
  if (resume && !has_run) {
    return Misuse(absl::StrCat("-o ", path,
                               ": there is no run to resume (no run.toml); leave out --resume to "
                               "begin one"));
  }
  if (resume) return absl::OkStatus();
  if (has_run) {
    const absl::StatusOr<RunInfo> info = ReadRunInfo(run_file);
    const std::string what =
        info.ok() ? absl::StrCat("a ", ToString(info->status), " run of ", info->strategy)
                  : std::string("a run");
    const bool finished = info.ok() && info->status == RunStatus::kFinished;
    return Misuse(absl::StrCat(
        "-o ", path, ": holds ", what, " already; nothing was changed; give another folder",
        finished ? ", or remove this one" : ", or --resume to go on with it"));
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (!IsOfABeginning(name)) {
      return Misuse(absl::StrCat("-o ", path, ": is no run's folder but holds '", name,
                                 "'; nothing was changed; give a new or an empty folder"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<RunFolder> RunFolder::Open(const std::string& path, bool resume) {
  MP_RETURN_IF_ERROR(Check(path, resume));
  RunFolder folder;
  folder.path_ = path;
  MP_RETURN_IF_ERROR(MakeDirectories(path));
  MP_ASSIGN_OR_RETURN(FolderLock lock, FolderLock::Take(path, "run"));
  folder.lock_.emplace(std::move(lock));
  if (resume) {
    MP_ASSIGN_OR_RETURN(folder.previous_, ReadRunInfo(folder.File("run.toml")));
  }
  return folder;
}

absl::StatusOr<RunFolder> RunFolder::Look(const std::string& path, bool resume) {
  RunFolder folder;
  folder.path_ = path;
  if (resume) {
    MP_ASSIGN_OR_RETURN(folder.previous_, ReadRunInfo(folder.File("run.toml")));
  }
  return folder;
}

absl::Status RunFolder::WriteInfo(const RunInfo& info) const {
  return WriteRunInfo(info, File("run.toml"));
}

}  // namespace mergeplan
