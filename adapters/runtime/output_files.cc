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

namespace mergeplan {

absl::Status CheckOutputFiles(const std::vector<std::string>& outputs,
                              const std::vector<std::string>& endings) {
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
    if (!seen.insert(output).second) {
      return Misuse(absl::StrCat("-o ", output, ": stands there twice"));
    }
    const std::filesystem::path folder = std::filesystem::absolute(output).parent_path();
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("-o ", output, ": the folder ", folder.string(), " cannot be written (",
                       std::strerror(errno), "); make it, or name another"));
    }
  }
  return absl::OkStatus();
}

}  // namespace mergeplan
