#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/report/report.h"

namespace mergeplan::cli {

// A finished run folder as `mergeplan distill` leaves it (run.toml, plan.toml, result.toml,
// result.npz): what was planned and what came out. The law's figures are filled in for SGD budgets;
// the law test is not made here.
struct RunResults {
  StrategyResult result;
  std::string dtype;    // of the run's arithmetic
  std::string teacher;  // its kind (planner/runs/run_info.h)
  std::string teacher_file;
  std::string basis;
};

// Errors name the file: a run that is not finished (and how to finish it), a result that does not
// belong to its plan, arrays that do not match their hash.
absl::StatusOr<RunResults> ReadRunResults(const std::string& folder);

}  // namespace mergeplan::cli
