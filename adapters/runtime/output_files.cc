#include "adapters/runtime/output_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/runtime/arguments.h"
#include "planner/base/leftover.h"
#include "planner/base/status_macros.h"

namespace mergeplan {

namespace {

absl::Status CheckAgainstInputs(const std::string& output, const std::filesystem::path& folder,
                                const std::vector<std::string>& inputs) {
  std::error_code error;
  for (const std::string& input : inputs) {
    if (std::filesystem::equivalent(output, input, error)) {
      return Misuse(absl::StrCat("-o ", output,
                                 ": is the input, which would be overwritten; give another name"));
    }
    if (std::filesystem::is_directory(input, error) &&
        std::filesystem::equivalent(folder, input, error)) {
      return Misuse(absl::StrCat("-o ", output, ": lies in the input's folder ", input,
                                 ", whose data it would change; give another name"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckNewFolder(const std::string& path) {
  std::error_code error;
  if (path.empty()) return Misuse("the folder's name is empty, expected a name");
  if (std::filesystem::exists(path, error) && !std::filesystem::is_directory(path, error)) {
    return Misuse(absl::StrCat(path, ": is a file, expected a folder; give another name"));
  }
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (IsLeftover(name)) continue;
    return Misuse(absl::StrCat(path, ": holds '", name,
                               "'; nothing was changed; give a new or an empty folder"));
  }
  std::filesystem::path there = std::filesystem::absolute(path, error);
  while (!std::filesystem::exists(there, error) && there.has_parent_path() &&
         there != there.parent_path()) {
    there = there.parent_path();
  }
  if (::access(there.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(path, ": the folder ", there.string(),
                                                    " cannot be written (", std::strerror(errno),
                                                    "); make it, or name another"));
}

absl::Status CheckOutputFiles(const std::vector<std::string>& outputs,
                              const std::vector<std::string>& endings,
                              const std::vector<std::string>& inputs) {
  if (outputs.empty()) {
    return Misuse(absl::StrCat("-o: missing, expected a name that ends in ",
                               absl::StrJoin(endings, " or "),
                               ", or several: -o grid.png -o samples.npz"));
  }
  std::set<std::string> seen;
  for (const std::string& output : outputs) {
    if (std::none_of(endings.begin(), endings.end(),
                     [&](const std::string& ending) { return absl::EndsWith(output, ending); })) {
      return Misuse(absl::StrCat("-o ", output, ": expected a name that ends in ",
                                 absl::StrJoin(endings, " or ")));
    }
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::weakly_canonical(output, error);
    if (!seen.insert(error ? output : whole.string()).second) {
      return Misuse(absl::StrCat("-o ", output, ": stands there twice"));
    }
    const std::filesystem::path folder = std::filesystem::absolute(output).parent_path();
    MP_RETURN_IF_ERROR(CheckAgainstInputs(output, folder, inputs));
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("-o ", output, ": the folder ", folder.string(), " cannot be written (",
                       std::strerror(errno), "); make it, or name another"));
    }
  }
  return absl::OkStatus();
}

}  // namespace mergeplan
