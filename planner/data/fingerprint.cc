#include "planner/data/fingerprint.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/many.h"
#include "planner/data/spool.h"

namespace mergeplan {

namespace fs = std::filesystem;

absl::StatusOr<std::string> FingerprintOfInput(const std::string& input) {
  std::error_code ec;
  if (fs::is_regular_file(input, ec)) return Sha256OfFile(input);
  if (input == "-") {
    MP_ASSIGN_OR_RETURN(const std::string path, SpoolStandardInput());
    return Sha256OfFile(path);
  }
  ec.clear();
  std::vector<std::string> lines;
  const auto add = [&lines](const fs::path& path) {
    std::error_code none;
    const auto time = fs::last_write_time(path, none).time_since_epoch().count();
    lines.push_back(absl::StrCat(path.string(), " ", fs::file_size(path, none), " ", time));
  };
  if (std::error_code none; !fs::is_directory(input, none)) {
    MP_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesLike(input));
    for (const std::string& file : files) add(file);
  }
  const auto options = fs::directory_options::follow_directory_symlink;
  fs::recursive_directory_iterator it;
  if (lines.empty()) it = fs::recursive_directory_iterator(input, options, ec);
  for (const fs::recursive_directory_iterator end; !ec && it != end; it.increment(ec)) {
    std::error_code none;
    if (it->is_regular_file(none)) add(it->path());
  }
  if (ec) {
    return absl::FailedPreconditionError(
        absl::StrCat(input, ": cannot be listed (", ec.message(), ")"));
  }
  std::sort(lines.begin(), lines.end());
  std::string all;
  for (const std::string& line : lines) absl::StrAppend(&all, line, "\n");
  return Sha256(all);
}

}  // namespace mergeplan
