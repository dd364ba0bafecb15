#include "planner/schedule/arrays.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz.h"
#include "planner/schedule/json_text.h"

namespace mergeplan {
namespace {

using Json = nlohmann::json;

absl::StatusOr<std::vector<double>> Numbers(const Json& json, const std::string& key,
                                            const std::string& path) {
  if (!json.contains(key)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": \"", key, "\" is missing, expected {\"alpha\": […], \"sigma\": […]}"));
  }
  const Json& array = json[key];
  if (!array.is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": \"", key, "\" is a ", array.type_name(),
                     ", expected a list of numbers, index 0 = clean end"));
  }
  std::vector<double> values;
  for (size_t i = 0; i < array.size(); ++i) {
    const bool number = array[i].is_number() && std::abs(array[i].get<double>()) < kJsonInfinity;
    if (!number) {
      std::string shown = array[i].dump();
      if (shown.size() > 40) shown = shown.substr(0, 37) + "...";
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": \"", key, "\"[", i, "] is ", shown, ", expected a finite number"));
    }
    values.push_back(array[i].get<double>());
  }
  return values;
}

absl::StatusOr<std::vector<double>> NpzNumbers(const std::string& path, const std::string& key) {
  MP_ASSIGN_OR_RETURN(NpyArray array, ReadNpzArray(path, key));
  if (array.shape.size() != 1 || array.values.size() != static_cast<size_t>(array.shape[0])) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: array \"%s\" has %d dimensions and dtype %s, expected a list of numbers, index 0 = "
        "clean end",
        path, key, array.shape.size(), array.dtype));
  }
  return std::move(array.values);
}

absl::StatusOr<Schedule> FromArrays(std::vector<double> alpha, std::vector<double> sigma,
                                    const std::string& path, std::optional<int> teacher_steps) {
  Schedule s;
  s.spec = path;
  s.name = "arrays";
  s.alpha = std::move(alpha);
  s.sigma = std::move(sigma);
  s.level_scale.assign(s.alpha.size(), 1.0);
  if (absl::Status status = ValidateSchedule(s); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(path, ": ", std::string(status.message())));
  }
  if (teacher_steps && *teacher_steps != s.steps()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: teacher steps are %d, but the arrays hold %d values, expected %d (or leave the steps "
        "out)",
        path, *teacher_steps, s.alpha.size(), *teacher_steps + 1));
  }
  return s;
}

}  // namespace

absl::StatusOr<Schedule> ArraysFromJson(const Json& json, const std::string& path,
                                        std::optional<int> teacher_steps) {
  for (const auto& [key, value] : json.items()) {
    if (key != "alpha" && key != "sigma" && (key.empty() || key[0] != '_')) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": unknown key \"", key, "\", expected alpha and sigma"));
    }
  }
  MP_ASSIGN_OR_RETURN(std::vector<double> alpha, Numbers(json, "alpha", path));
  MP_ASSIGN_OR_RETURN(std::vector<double> sigma, Numbers(json, "sigma", path));
  return FromArrays(std::move(alpha), std::move(sigma), path, teacher_steps);
}

absl::StatusOr<Schedule> ArraysFromNpz(const std::string& path, std::optional<int> teacher_steps) {
  MP_ASSIGN_OR_RETURN(std::vector<double> alpha, NpzNumbers(path, "alpha"));
  MP_ASSIGN_OR_RETURN(std::vector<double> sigma, NpzNumbers(path, "sigma"));
  return FromArrays(std::move(alpha), std::move(sigma), path, teacher_steps);
}

}  // namespace mergeplan
