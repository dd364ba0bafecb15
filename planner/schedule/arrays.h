#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "planner/schedule/schedule.h"

namespace mergeplan {

// Schedules given as arrays alpha and sigma of T + 1 values each, index 0 = clean end, taken as
// they are. In JSON {"alpha": […], "sigma": […]} and nothing else; in an .npz the arrays of these
// names, others are left alone. INVALID_ARGUMENT names `path`, the array, the index and what was
// expected; alpha/sigma that does not fall names t.
absl::StatusOr<Schedule> ArraysFromJson(const nlohmann::json& json, const std::string& path,
                                        std::optional<int> teacher_steps);
absl::StatusOr<Schedule> ArraysFromNpz(const std::string& path, std::optional<int> teacher_steps);

}  // namespace mergeplan
