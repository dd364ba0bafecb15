#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/runtime/arguments.h"
#include "adapters/runtime/run_folder.h"
#include "planner/operators/terms.h"
#include "planner/plan/io/document.h"
#include "planner/schedule/schedule.h"
#include "plugins/host/host.h"

namespace mergeplan {

// The question behind a plan for students that are not linear: their own training is not what the
// linear model knows, so that it trains for a time s (--train-time). The reference is the teacher.

// The time where none is given: the paper's.
inline constexpr double kDefaultTrainTime = 6.4;

// Of the arguments: a plan's file fixes schedule, start, blocks and time (for updates of linear
// students the time is --train-time's), and an option must say the same; else they come from the
// options. `init` where nothing is said. Leaves the variances to the caller, and with options the
// plan. Misuse names the option.
absl::StatusOr<PlanDocument> FlowQuestion(const DistillArguments& arguments, Init init,
                                          Schedule* schedule);

// Asks the plugin (dp_custom for a plan's file) and fills in what the plan comes to in the linear
// model. `parameters` are completed with the plan's path.
absl::Status AnswerFlowQuestion(const DistillArguments& arguments, const Schedule& schedule,
                                const Plugin& plugin,
                                const std::map<std::string, std::string>& parameters,
                                PlannerServices& services, const std::string& about,
                                PlanDocument* document);
// The plugin's parameters as given, with the plan's path where there is one.
absl::StatusOr<std::map<std::string, std::string>> PluginParameters(
    const DistillArguments& arguments);

// Does --train-time say what the run's plan does, where it says anything?
absl::Status CheckTrainTime(const DistillArguments& arguments, const PlanDocument& document,
                            const RunFolder& folder);

}  // namespace mergeplan
