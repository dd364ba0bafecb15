#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "planner/schedule/diffusers_options.h"
#include "planner/schedule/schedule.h"

namespace mergeplan {

// Is it one of the names of ScheduleNames()?
bool IsScheduleName(std::string_view name);

// Builds a named schedule with teacher_steps >= 1 levels above the clean one. Level 0 is exactly
// clean (alpha 1, sigma 0). INVALID_ARGUMENT names the parameter, what was found and the parameters
// that there are. O(teacher_steps).
absl::StatusOr<Schedule> NamedSchedule(const std::string& name,
                                       const std::vector<SpecParameter>& parameters,
                                       int teacher_steps);

// "a=1,b=2" as pairs; INVALID_ARGUMENT names `spec` and the part that is no key=value, or a key
// that stands twice. An empty text gives no pairs.
absl::StatusOr<std::vector<SpecParameter>> ParseParameters(std::string_view text,
                                                           const std::string& spec);

}  // namespace mergeplan
