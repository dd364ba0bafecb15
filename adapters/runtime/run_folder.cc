#include "adapters/runtime/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "adapters/runtime/arguments.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFormat = 1;

constexpr RunStatus kStatuses[] = {RunStatus::kRunning, RunStatus::kStopped, RunStatus::kFinished};

// Takes keys out of a table one by one, so that what is left is unknown.
class TableReader {
 public:
  TableReader(std::string file, const toml::table& table) : file_(std::move(file)), table_(table) {}

  absl::Status Text(const char* key, std::string* out) {
    const toml::node_view<const toml::node> node = Find(key);
    if (!node.is_string()) return Error(key, "expected a text");
    *out = node.ref<std::string>();
    return absl::OkStatus();
  }
  absl::Status Integer(const char* key, std::int64_t least, std::int64_t most, std::int64_t* out) {
    const toml::node_view<const toml::node> node = Find(key);
    if (!node.is_integer()) return Error(key, "expected a whole number");
    *out = node.ref<std::int64_t>();
    if (*out < least || *out > most) {
      return Error(key, absl::StrCat("is ", *out, ", expected ", least, "..", most));
    }
    return absl::OkStatus();
  }
  absl::Status Texts(const char* key, std::map<std::string, std::string>* out) {
    const toml::node_view<const toml::node> node = Find(key);
    if (!node.is_table()) return Error(key, "expected a table");
    for (const auto& [name, value] : *node.as_table()) {
      if (!value.is_string())
        return Error(key, absl::StrCat("'", std::string(name.str()), "': expected a text"));
      (*out)[std::string(name.str())] = value.ref<std::string>();
    }
    return absl::OkStatus();
  }
  absl::Status NothingElse() const {
    for (const auto& [name, value] : table_) {
      const std::string key(name.str());
      if (std::find(seen_.begin(), seen_.end(), key) == seen_.end()) {
        return absl::InvalidArgumentError(absl::StrCat(file_, ": unknown key '", key, "'"));
      }
    }
    return absl::OkStatus();
  }
  absl::Status Error(const std::string& key, const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(file_, ": key '", key, "': ", what));
  }

 private:
  toml::node_view<const toml::node> Find(const char* key) {
    seen_.emplace_back(key);
    return table_[key];
  }
  std::string file_;
  const toml::table& table_;
  std::vector<std::string> seen_;
};

// What a write beside leaves when the program is killed before it renames.
bool IsHalfWritten(const std::string& name) { return name.find(".tmp-") != std::string::npos; }

// What may lie in a folder in which a run was about to begin.
bool IsLeftover(const std::string& name) {
  return name == "lock" || absl::StartsWith(name, "plan.") || absl::StartsWith(name, "plan-") ||
         absl::StartsWith(name, ".") || IsHalfWritten(name);
}

// What only a run that had its run.toml leaves.
bool IsOfATrainedRun(const std::string& name) {
  return name == "checkpoint.npz" || name == "result.toml" || name == "result.npz";
}

}  // namespace

std::string ToString(RunStatus status) {
  switch (status) {
    case RunStatus::kRunning:
      return "running";
    case RunStatus::kStopped:
      return "stopped";
    case RunStatus::kFinished:
      return "finished";
  }
  return "running";
}

absl::Status RunFolder::Check(const std::string& path, bool resume) {
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
    if (!IsLeftover(name)) {
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
  const std::string lock = folder.File("lock");
  folder.lock_ = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (folder.lock_ < 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        lock, ": cannot be opened for writing (", std::strerror(errno),
        "), expected the run's lock file; ",
        fs::is_directory(lock) ? "remove the folder of that name" : "make the folder writable",
        ", or give another folder by -o"));
  }
  if (flock(folder.lock_, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("-o ", path,
                     ": another program is working in this folder; wait until it has "
                     "finished, or give another folder"));
  }
  // Nobody else writes here now, so what is half-written stays so.
  std::error_code error;
  std::vector<fs::path> half_written;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (IsHalfWritten(entry.path().filename().string())) half_written.push_back(entry.path());
  }
  for (const fs::path& file : half_written) fs::remove(file, error);
  if (resume) {
    MP_ASSIGN_OR_RETURN(folder.previous_, ReadRunInfo(folder.File("run.toml")));
  }
  return folder;
}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)),
      lock_(std::exchange(other.lock_, -1)),
      previous_(std::move(other.previous_)) {}

RunFolder::~RunFolder() {
  if (lock_ >= 0) close(lock_);
}

absl::Status RunFolder::WriteInfo(const RunInfo& info) const {
  toml::table parameters;
  for (const auto& [name, value] : info.parameters) parameters.insert(name, value);
  const toml::table table{
      {"format", kFormat},
      {"status", ToString(info.status)},
      {"strategy", info.strategy},
      {"plugin", info.plugin},
      {"plugin_version", info.plugin_version},
      {"parameters", parameters},
      {"spectrum", info.spectrum},
      {"spectrum_sha256", info.spectrum_sha256},
      {"variances_sha256", info.variances_sha256},
      {"basis", info.basis},
      {"seed", info.seed},
      {"dtype", info.dtype},
      {"device", info.device},
      {"batch", static_cast<std::int64_t>(info.batch)},
      {"plan", "plan.toml"},
      {"plan_sha256", info.plan_sha256},
      {"fingerprint", info.fingerprint},
      {"mergeplan_version", info.mergeplan_version},
      {"torch_version", info.torch_version},
  };
  std::ostringstream text;
  text << table << '\n';
  return WriteFileAtomically(File("run.toml"), text.str());
}

absl::StatusOr<RunInfo> ReadRunInfo(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": line ", error.source().begin.line, ": ",
                                                   std::string(error.description())));
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  TableReader reader(path, table);
  std::int64_t format = 0, batch = 0;
  MP_RETURN_IF_ERROR(reader.Integer("format", 1, kMost, &format));
  if (format != kFormat) {
    return reader.Error("format", absl::StrCat("is ", format, ", this version reads ", kFormat));
  }
  RunInfo info;
  std::string status, plan;
  MP_RETURN_IF_ERROR(reader.Text("status", &status));
  const auto* known = std::find_if(std::begin(kStatuses), std::end(kStatuses),
                                   [&](RunStatus s) { return ToString(s) == status; });
  if (known == std::end(kStatuses)) {
    return reader.Error("status",
                        absl::StrCat("is '", status, "', expected running, stopped or finished"));
  }
  info.status = *known;
  const std::pair<const char*, std::string*> texts[] = {
      {"strategy", &info.strategy},
      {"plugin", &info.plugin},
      {"plugin_version", &info.plugin_version},
      {"spectrum", &info.spectrum},
      {"spectrum_sha256", &info.spectrum_sha256},
      {"variances_sha256", &info.variances_sha256},
      {"basis", &info.basis},
      {"dtype", &info.dtype},
      {"device", &info.device},
      {"plan", &plan},
      {"plan_sha256", &info.plan_sha256},
      {"fingerprint", &info.fingerprint},
      {"mergeplan_version", &info.mergeplan_version},
      {"torch_version", &info.torch_version}};
  for (const auto& [key, out] : texts) MP_RETURN_IF_ERROR(reader.Text(key, out));
  MP_RETURN_IF_ERROR(reader.Texts("parameters", &info.parameters));
  MP_RETURN_IF_ERROR(
      reader.Integer("seed", 0, std::numeric_limits<std::int64_t>::max(), &info.seed));
  MP_RETURN_IF_ERROR(reader.Integer("batch", 1, 1 << 30, &batch));
  info.batch = static_cast<int>(batch);
  MP_RETURN_IF_ERROR(reader.NothingElse());
  return info;
}

}  // namespace mergeplan
