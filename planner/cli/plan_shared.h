#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/cli/question.h"
#include "planner/search/search.h"

namespace mergeplan::cli {

// `mergeplan plan --shared`: the budget of the question is one total for all merges of the plan
// (planner/search/shared_time.h). `output`: a .json file for the object that --json prints, or
// empty. Plan files say the same training for every merge, so there is none of this plan.
struct SharedFlags {
  bool json = false;
  bool quiet = false;
  std::string output;
};
// What of the flags can be judged before the data are read.
absl::Status CheckSharedFlags(const SharedFlags& flags);
absl::StatusOr<int> RunPlanShared(const Question& question, SearchOptions options,
                                  const SharedFlags& flags);

}  // namespace mergeplan::cli
