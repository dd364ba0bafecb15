#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/runtime/arguments.h"
#include "adapters/runtime/run_folder.h"
#include "planner/plan/io/document.h"

namespace mergeplan {

// Going on with a run: options that are given nevertheless must say what the run says.

// Misuse: the option says something else than the run in the folder.
absl::Status DiffersFromRun(const RunFolder& folder, const std::string& option,
                            const std::string& given, const std::string& had);

// Options of training as texts, all of them, in their one way of writing; an error for those that
// cannot be.
using CanonicalOptions = std::function<absl::StatusOr<std::map<std::string, std::string>>(
    const std::map<std::string, std::string>&)>;
// Do the options that are given say what the run `had`?
absl::Status CheckTraining(const RunFolder& folder, const std::map<std::string, std::string>& given,
                           const std::map<std::string, std::string>& had,
                           const CanonicalOptions& canonical);

// The plan of the run, checked against its hash, and the options that all kinds of runs have:
// strategy, plan, parameters, seed, batch, dtype, basis, kind of teacher. What is said of the
// schedule, the start and the budget is not compared. `traits` are the teacher's.
absl::StatusOr<PlanDocument> ResumedPlan(const DistillArguments& arguments, const RunFolder& folder,
                                         std::uint64_t traits);

}  // namespace mergeplan
