// LoadSchedule: tells names, configs and arrays apart.

#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/schedule/arrays.h"
#include "planner/schedule/diffusers_config.h"
#include "planner/schedule/json_text.h"
#include "planner/schedule/named.h"
#include "planner/schedule/schedule.h"

namespace mergeplan {
namespace {

namespace fs = std::filesystem;

constexpr int kLargestSteps = 100'000;
constexpr std::uintmax_t kLargestJson = 64u << 20;

absl::StatusOr<int> NeedSteps(const std::string& spec, std::optional<int> teacher_steps) {
  if (!teacher_steps) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule \"", spec, "\": teacher steps are missing, expected a number (--teacher-steps)"));
  }
  return *teacher_steps;
}

absl::Status CheckSteps(const std::string& spec, std::optional<int> teacher_steps) {
  if (teacher_steps && (*teacher_steps < 1 || *teacher_steps > kLargestSteps)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("schedule \"%s\": teacher steps are %d, expected a number from 1 to %d",
                        spec, *teacher_steps, kLargestSteps));
  }
  return absl::OkStatus();
}

bool Exists(const std::string& path) {
  std::error_code error;
  return !path.empty() && fs::exists(path, error) && !error;
}

// A path, and what stands behind the colon that ends it.
struct SplitSpec {
  std::string path;
  std::string parameters;
};

absl::StatusOr<SplitSpec> SplitPath(const std::string& spec) {
  if (Exists(spec)) return SplitSpec{spec, ""};
  const size_t colon = spec.rfind(':');
  if (colon != spec.npos && Exists(spec.substr(0, colon))) {
    return SplitSpec{spec.substr(0, colon), spec.substr(colon + 1)};
  }
  std::vector<std::string> names;
  for (const std::string& line : ScheduleNames()) {
    names.push_back(line.substr(0, line.find_first_of(": ")));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "schedule \"", spec, "\": neither a file or folder that exists nor a known name, expected ",
      absl::StrJoin(names, ", "), ", a scheduler_config.json or a file with alpha and sigma"));
}

// The file to read: of a folder its scheduler_config.json, or that of the folder "scheduler" in it.
absl::StatusOr<std::string> FileOf(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (const char* inside : {"scheduler_config.json", "scheduler/scheduler_config.json"}) {
      const std::string file = (fs::path(path) / inside).string();
      if (fs::is_regular_file(file, error)) return file;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": a folder without scheduler_config.json or "
                     "scheduler/scheduler_config.json, expected one of them"));
  }
  if (!fs::is_regular_file(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  }
  return path;
}

absl::StatusOr<Schedule> LoadFile(const std::string& path, const SplitSpec& split,
                                  const std::string& spec, std::optional<int> teacher_steps) {
  MP_ASSIGN_OR_RETURN(const auto parameters, ParseParameters(split.parameters, spec));
  const auto no_parameters = [&]() {
    return parameters.empty() ? absl::OkStatus()
                              : absl::InvalidArgumentError(absl::StrCat(
                                    path, ": holds arrays, expected no parameters, found \"",
                                    split.parameters, "\""));
  };
  std::string magic(6, '\0');
  {
    std::ifstream in(path, std::ios::binary);
    in.read(magic.data(), static_cast<std::streamsize>(magic.size()));
  }
  if (magic.substr(0, 4) == std::string("PK\x03\x04", 4)) {
    MP_RETURN_IF_ERROR(no_parameters());
    return ArraysFromNpz(path, teacher_steps);
  }
  if (magic == "\x93NUMPY") {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": one .npy array, expected an .npz with the arrays alpha and sigma"));
  }
  std::error_code error;
  if (const auto size = fs::file_size(path, error); !error && size > kLargestJson) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": ", size, " bytes, expected a JSON file of at most ", kLargestJson, " bytes"));
  }
  MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  MP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, path));
  if (json.is_object() && !json.contains("_class_name") &&
      (json.contains("alpha") || json.contains("sigma"))) {
    MP_RETURN_IF_ERROR(no_parameters());
    return ArraysFromJson(json, path, teacher_steps);
  }
  MP_ASSIGN_OR_RETURN(const SamplerOptions options, ReadSamplerOptions(json, path, parameters));
  MP_ASSIGN_OR_RETURN(const int steps, NeedSteps(spec, teacher_steps));
  MP_ASSIGN_OR_RETURN(const DiffusersTables tables, ComputeDiffusersTables(options, steps, path));
  return ScheduleOfTables(tables, path);
}

}  // namespace

absl::StatusOr<SamplerOptions> LoadSamplerOptions(const std::string& spec) {
  MP_ASSIGN_OR_RETURN(const SplitSpec split, SplitPath(spec));
  MP_ASSIGN_OR_RETURN(const std::string file, FileOf(split.path));
  MP_ASSIGN_OR_RETURN(const auto parameters, ParseParameters(split.parameters, spec));
  MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  MP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, file));
  return ReadSamplerOptions(json, file, parameters);
}

absl::StatusOr<Schedule> LoadSchedule(const std::string& spec, std::optional<int> teacher_steps) {
  MP_RETURN_IF_ERROR(CheckSteps(spec, teacher_steps));
  const size_t colon = spec.find(':');
  const std::string name = spec.substr(0, colon);
  if (IsScheduleName(name)) {
    MP_ASSIGN_OR_RETURN(
        const auto parameters,
        ParseParameters(colon == spec.npos ? "" : std::string_view(spec).substr(colon + 1), spec));
    MP_ASSIGN_OR_RETURN(const int steps, NeedSteps(spec, teacher_steps));
    MP_ASSIGN_OR_RETURN(Schedule s, NamedSchedule(name, parameters, steps));
    MP_RETURN_IF_ERROR(ValidateSchedule(s));
    s.spec = spec;
    return s;
  }
  MP_ASSIGN_OR_RETURN(const SplitSpec split, SplitPath(spec));
  MP_ASSIGN_OR_RETURN(const std::string file, FileOf(split.path));
  MP_ASSIGN_OR_RETURN(Schedule s, LoadFile(file, split, spec, teacher_steps));
  s.spec = spec;
  return s;
}

}  // namespace mergeplan
