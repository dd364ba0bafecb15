#include "planner/runs/run_info.h"

#include <toml++/toml.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"
#include "planner/runs/table_reader.h"

namespace mergeplan {
namespace {

constexpr std::int64_t kFormat = 3;
constexpr RunStatus kStatuses[] = {RunStatus::kRunning, RunStatus::kStopped, RunStatus::kFinished};

// The texts of run.toml by key, in the order of the file.
constexpr std::pair<const char*, std::string RunInfo::*> kTexts[] = {
    {"strategy", &RunInfo::strategy},
    {"plugin", &RunInfo::plugin},
    {"plugin_version", &RunInfo::plugin_version},
    {"teacher", &RunInfo::teacher},
    {"teacher_file", &RunInfo::teacher_file},
    {"teacher_sha256", &RunInfo::teacher_sha256},
    {"student", &RunInfo::student},
    {"variances_sha256", &RunInfo::variances_sha256},
    {"basis", &RunInfo::basis},
    {"dtype", &RunInfo::dtype},
    {"device", &RunInfo::device},
    {"plan_sha256", &RunInfo::plan_sha256},
    {"fingerprint", &RunInfo::fingerprint},
    {"prediction", &RunInfo::prediction},
    {"mergeplan_version", &RunInfo::mergeplan_version},
    {"torch_version", &RunInfo::torch_version}};

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

absl::Status WriteRunInfo(const RunInfo& info, const std::string& path) {
  const auto not_utf8 = [&](const std::string& key) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not written, ", key, " is not UTF-8, which TOML has to be"));
  };
  toml::table parameters;
  for (const auto& [name, value] : info.parameters) {
    if (!IsUtf8(name) || !IsUtf8(value)) return not_utf8("a parameter");
    parameters.insert(name, value);
  }
  toml::table training;
  for (const auto& [option, text] : info.training) training.insert(option, text);
  toml::table table{{"format", kFormat},   {"status", ToString(info.status)},
                    {"seed", info.seed},   {"batch", static_cast<std::int64_t>(info.batch)},
                    {"plan", "plan.toml"}, {"parameters", parameters},
                    {"training", training}};
  if (info.threads > 0) table.insert("threads", static_cast<std::int64_t>(info.threads));
  for (const auto& [key, member] : kTexts) {
    if (!IsUtf8(info.*member)) return not_utf8(key);
    table.insert(key, info.*member);
  }
  std::ostringstream text;
  text << table << '\n';
  return WriteFileAtomically(path, text.str());
}

absl::StatusOr<RunInfo> ReadRunInfo(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const toml::table table, ParseTomlFile(path));
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
  for (const auto& [key, member] : kTexts) MP_RETURN_IF_ERROR(reader.Text(key, &(info.*member)));
  constexpr absl::string_view kPredictions[] = {"law", "mean", "moments", "none"};
  if (std::count(std::begin(kPredictions), std::end(kPredictions), info.prediction) == 0) {
    return reader.Error("prediction", absl::StrCat("is '", info.prediction,
                                                   "', expected law, mean, moments or none"));
  }
  MP_RETURN_IF_ERROR(reader.Text("plan", &plan));
  MP_RETURN_IF_ERROR(reader.Texts("parameters", &info.parameters));
  MP_RETURN_IF_ERROR(reader.Texts("training", &info.training));
  MP_RETURN_IF_ERROR(
      reader.Integer("seed", 0, std::numeric_limits<std::int64_t>::max(), &info.seed));
  MP_RETURN_IF_ERROR(reader.Integer("batch", 1, std::numeric_limits<int>::max(), &batch));
  info.batch = static_cast<int>(batch);
  MP_RETURN_IF_ERROR(reader.OptionalCount("threads", &info.threads));
  MP_RETURN_IF_ERROR(reader.NothingElse());
  return info;
}

}  // namespace mergeplan
