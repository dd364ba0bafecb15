#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "adapters/runtime/arguments.h"
#include "adapters/sample/sampler.h"
#include "planner/base/status_macros.h"
#include "planner/runs/run_info.h"

namespace mergeplan::sample {
namespace {

namespace fs = std::filesystem;

bool IsFile(const fs::path& path) {
  std::error_code ec;
  return fs::is_regular_file(path, ec);
}

// RUN, RUN/student or RUN/student/FIRST-LAST: the run; else empty. The last is one block's network,
// which makes samples alone where it is the only one; OpenRun knows.
std::string RunOf(const fs::path& folder) {
  if (IsFile(folder / "run.toml")) return folder.string();
  fs::path above = folder.lexically_normal();
  if (above.filename().empty()) above = above.parent_path();
  for (int up = 0; up < 2; ++up) {
    const bool student = above.filename() == "student";
    above = above.parent_path();
    if (student && IsFile(above / "run.toml")) return above.string();
  }
  return "";
}

int EntriesOf(const fs::path& folder) {
  int count = 0;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    if (absl::StrContains(entry.path().filename().string(), '-')) ++count;
  }
  return count;
}

}  // namespace

absl::StatusOr<Sampler> OpenSource(const std::string& source, const SourceOptions& options) {
  for (const char* kind : {kAnalyticTeacher, kMixtureTeacher, kScriptTeacher, kUnetTeacher}) {
    const std::string prefix = absl::StrCat(kind, ":");
    if (absl::StartsWith(source, prefix)) {
      if (source.size() == prefix.size()) {
        return Misuse(absl::StrCat(source, ": no path, expected ", prefix, "PATH"));
      }
      return OpenTeacher(kind, source.substr(prefix.size()), options);
    }
  }
  std::error_code ec;
  if (fs::is_directory(source, ec)) {
    const std::string run = RunOf(fs::absolute(source));
    if (!run.empty()) {
      const fs::path student = fs::path(run) / "student";
      const bool block =
          !IsFile(fs::path(source) / "run.toml") &&
          (IsFile(fs::path(source) / "config.json") || IsFile(fs::path(source) / "model.toml"));
      if (block && EntriesOf(student) > 1) {
        return Misuse(absl::StrCat(source, ": is one of several blocks of the run ", run,
                                   ", and makes no samples alone; sample ", run));
      }
      return OpenRun(run, options);
    }
    if (IsFile(fs::path(source) / "config.json") ||
        IsFile(fs::path(source) / "unet" / "config.json")) {
      return OpenTeacher(kUnetTeacher, source, options);
    }
    if (IsFile(fs::path(source) / "model.toml")) {
      return OpenTeacher(kScriptTeacher, source + "/model.toml", options);
    }
    return Misuse(absl::StrCat(source,
                               ": holds neither a run (run.toml) nor a network (config.json, "
                               "unet/config.json or model.toml)"));
  }
  if (IsFile(source) && absl::EndsWith(source, ".ts")) {
    return OpenTeacher(kScriptTeacher, source, options);
  }
  return Misuse(absl::StrCat(source, fs::exists(source, ec) ? ": is no folder" : ": does not exist",
                             ", expected the folder of a run or of a network, or KIND:PATH with "
                             "KIND analytic, mixture, script or unet"));
}

}  // namespace mergeplan::sample
