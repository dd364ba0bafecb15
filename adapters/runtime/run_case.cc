#include "adapters/runtime/run_case.h"

#include "planner/base/status_macros.h"

namespace mergeplan {

absl::StatusOr<std::shared_ptr<const RunCase>> NewRun(const DistillArguments& arguments,
                                                      PlannerServices& services) {
  MP_ASSIGN_OR_RETURN(const TeacherName name, ParseTeacher(*arguments.teacher));
  return name.kind == kMixtureTeacher ? NewMixtureRun(arguments, services)
                                      : NewGaussianRun(arguments, services);
}

absl::StatusOr<std::shared_ptr<const RunCase>> ResumedRun(const DistillArguments& arguments,
                                                          const RunFolder& folder) {
  return folder.previous()->teacher == kMixtureTeacher ? ResumedMixtureRun(arguments, folder)
                                                       : ResumedGaussianRun(arguments, folder);
}

}  // namespace mergeplan
