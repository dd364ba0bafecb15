#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "adapters/runtime/arguments.h"
#include "planner/plan/io/document.h"
#include "planner/runs/run_info.h"
#include "planner/schedule/schedule.h"
#include "plugins/host/host.h"

namespace mergeplan {

// The plugin that executes plan files.
inline constexpr char kPlanPlugin[] = "dp_custom";

// The plugin of a new run for a teacher of these traits (mergeplan_teacher_trait). A name that no
// plugin has, and parameters that are not the plugin's, are the caller's errors.
absl::StatusOr<std::shared_ptr<const Plugin>> NewPlugin(
    const std::string& name, const DistillArguments& arguments,
    const std::map<std::string, std::string>& parameters, std::uint64_t traits);
// The plugin of a run that goes on: by the manifest that was used, or by name where it has moved.
absl::StatusOr<std::shared_ptr<const Plugin>> OldPlugin(const RunInfo& info,
                                                        const DistillArguments& arguments,
                                                        std::uint64_t traits);

// What run.toml says of plugin and plan, the basis being the plan's; the rest is left empty.
RunInfo InfoOf(const Plugin& plugin, const std::map<std::string, std::string>& parameters,
               const PlanDocument& document);
// "" stays "".
std::string AbsolutePath(const std::string& path);

// The schedule that a plan's file keeps.
Schedule ScheduleOf(const PlanDocument& document);
// The same with what the file does not keep (timesteps, native scales), which networks are told: by
// loading the schedule again. FAILED_PRECONDITION where that gives other noise levels than the plan
// has, or nothing.
absl::StatusOr<Schedule> WholeScheduleOf(const PlanDocument& document);
// What a plugin is asked for a document that has no plan yet.
PlanRequest RequestOf(const PlanDocument& document, Schedule schedule, int student_steps);

}  // namespace mergeplan
