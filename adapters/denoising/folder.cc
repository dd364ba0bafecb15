#include "adapters/denoising/folder.h"

#include <toml++/toml.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/runtime/arguments.h"
#include "planner/base/file.h"
#include "planner/base/leftover.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"
#include "planner/runs/table_reader.h"

namespace mergeplan::denoising {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFormat = 1;
constexpr RunStatus kStatuses[] = {RunStatus::kRunning, RunStatus::kStopped, RunStatus::kFinished};
constexpr std::pair<const char*, std::string TrainInfo::*> kTexts[] = {
    {"kind", &TrainInfo::kind},
    {"model_sha256", &TrainInfo::model_sha256},
    {"data_sha256", &TrainInfo::data_sha256},
    {"fingerprint", &TrainInfo::fingerprint},
    {"mergeplan_version", &TrainInfo::mergeplan_version},
    {"torch_version", &TrainInfo::torch_version}};
constexpr std::pair<const char*, std::int64_t TrainInfo::*> kCounts[] = {
    {"parameters", &TrainInfo::parameters},
    {"updates", &TrainInfo::updates},
    {"skipped", &TrainInfo::skipped}};

}  // namespace

absl::Status WriteTrainInfo(const TrainInfo& info, const std::string& path) {
  toml::table options;
  for (const auto& [name, text] : info.options) {
    if (!IsUtf8(text)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, " ", text,
                       ": is not UTF-8, which train.toml has to say it in; "
                       "rename it"));
    }
    options.insert(name, text);
  }
  toml::table table{{"format", kFormat},
                    {"status", ToString(info.status)},
                    {"seconds", info.seconds},
                    {"options", options}};
  if (std::isfinite(info.loss)) table.insert("loss", info.loss);
  if (info.threads > 0) table.insert("threads", static_cast<std::int64_t>(info.threads));
  for (const auto& [key, member] : kTexts) table.insert(key, info.*member);
  for (const auto& [key, member] : kCounts) table.insert(key, info.*member);
  std::ostringstream text;
  text << table << '\n';
  return WriteFileAtomically(path, text.str());
}

absl::StatusOr<TrainInfo> ReadTrainInfo(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const toml::table table, ParseTomlFile(path));
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  TableReader reader(path, table);
  std::int64_t format = 0;
  MP_RETURN_IF_ERROR(reader.Integer("format", 1, kMost, &format));
  if (format != kFormat) {
    return reader.Error("format", absl::StrCat("is ", format, ", this version reads ", kFormat));
  }
  TrainInfo info;
  std::string status;
  MP_RETURN_IF_ERROR(reader.Text("status", &status));
  bool known = false;
  for (const RunStatus s : kStatuses) {
    if (ToString(s) != status) continue;
    info.status = s;
    known = true;
  }
  if (!known) {
    return reader.Error("status",
                        absl::StrCat("is '", status, "', expected running, stopped or finished"));
  }
  for (const auto& [key, member] : kTexts) MP_RETURN_IF_ERROR(reader.Text(key, &(info.*member)));
  for (const auto& [key, member] : kCounts) {
    MP_RETURN_IF_ERROR(reader.Integer(key, 0, kMost, &(info.*member)));
  }
  MP_RETURN_IF_ERROR(reader.Texts("options", &info.options));
  MP_RETURN_IF_ERROR(reader.Number("seconds", &info.seconds));
  MP_RETURN_IF_ERROR(reader.OptionalNumber("loss", &info.loss));
  MP_RETURN_IF_ERROR(reader.OptionalCount("threads", &info.threads));
  if (info.kind != kUnetTeacher && info.kind != kScriptTeacher && info.kind != kAutoencoder) {
    return reader.Error("kind", absl::StrCat("is '", info.kind, "', expected ", kUnetTeacher, ", ",
                                             kScriptTeacher, " or ", kAutoencoder));
  }
  MP_RETURN_IF_ERROR(reader.NothingElse());
  return info;
}

absl::Status Folder::Check(const std::string& path, bool resume) {
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_directory(path, error)) {
    return Misuse(absl::StrCat(
        "-o ", path, ": is a file, expected the folder of a training; give another name"));
  }
  const bool has_training = fs::exists(path + "/train.toml", error);
  if (resume) {
    if (has_training) return absl::OkStatus();
    return Misuse(absl::StrCat("-o ", path,
                               ": there is no training to resume (no train.toml); leave out "
                               "--resume to begin one"));
  }
  if (has_training) {
    return Misuse(absl::StrCat("-o ", path,
                               ": holds a training already; nothing was changed; give another "
                               "folder, or --resume to go on with it"));
  }
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (IsLeftover(name)) continue;
    return Misuse(absl::StrCat("-o ", path, ": is no training's folder but holds '", name,
                               "'; nothing was changed; give a new or an empty folder"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Folder> Folder::Open(const std::string& path, bool resume) {
  MP_RETURN_IF_ERROR(Check(path, resume));
  MP_RETURN_IF_ERROR(MakeDirectories(path));
  Folder folder;
  folder.path_ = path;
  MP_ASSIGN_OR_RETURN(FolderLock lock, FolderLock::Take(path, "training"));
  folder.lock_.emplace(std::move(lock));
  return folder;
}

}  // namespace mergeplan::denoising
