#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/io/document.h"
#include "planner/plan/plan.h"
#include "planner/schedule/schedule.h"

namespace mergeplan {

// What samplers of other programs are told so that they take the student's N steps.

// The N + 1 levels that the student visits, from T down to 0.
std::vector<int> StudentLevels(const Plan& plan);

// The schedule that the document was made for, with timesteps and native noise, which plan files do
// not keep: read again from its name or file, or from `spec` where that is not empty.
// FAILED_PRECONDITION where it is not there, or has other levels than the plan.
absl::StatusOr<Schedule> ScheduleBehind(const PlanDocument& document, const std::string& spec = "");

// What a network is told at the N levels that the student starts from, noisiest first.
// INVALID_ARGUMENT where the schedule has no timesteps.
absl::StatusOr<std::vector<double>> StudentTimesteps(const Plan& plan, const Schedule& schedule);

// N + 1 sigmas, noisiest first, as k-diffusion counts them: z = x_0 + sigma eps in units of the
// data; of flow matching the share of noise, z = (1 - sigma) x_0 + sigma eps. The last one is where
// the student lands, 0 where the schedule ends clean. INVALID_ARGUMENT where a level is pure noise,
// which has no sigma but in flow matching.
absl::StatusOr<std::vector<double>> StudentSigmas(const Plan& plan, const Schedule& schedule);
// Are the native coordinates those of flow matching, alpha + sigma = 1?
bool IsFlow(const Schedule& schedule);

// JSON: "scheduler", the config of a scheduler that diffusers has and whose steps are the DDIM
// steps between those levels (EulerDiscreteScheduler on the same table, or
// FlowMatchEulerDiscreteScheduler), with "timesteps" or "sigmas" for its set_timesteps.
// `spec`: of the schedule. INVALID_ARGUMENT where no stock scheduler can do it, with the reason.
absl::StatusOr<std::string> StockScheduler(const Plan& plan, const Schedule& schedule,
                                           const std::string& spec);

}  // namespace mergeplan
