#include "adapters/cases/cases.h"

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace mergeplan {

absl::StatusOr<std::shared_ptr<const RunCase>> NewRun(const DistillArguments& arguments,
                                                      PlannerServices& services) {
  MP_ASSIGN_OR_RETURN(const TeacherName name, ParseTeacher(*arguments.teacher));
  if (HasNetworkStudents(arguments, name)) return NewNetworkRun(arguments, services);
  return name.kind == kMixtureTeacher ? NewMixtureRun(arguments, services)
                                      : NewGaussianRun(arguments, services);
}

absl::StatusOr<std::shared_ptr<const RunCase>> ResumedRun(const DistillArguments& arguments,
                                                          const RunFolder& folder) {
  const std::string& student = folder.previous()->student;
  if (student == kNetworkStudent) return ResumedNetworkRun(arguments, folder);
  if (student == kExpertsStudent) return ResumedMixtureRun(arguments, folder);
  if (student == kLinearStudent) return ResumedGaussianRun(arguments, folder);
  return absl::DataLossError(absl::StrCat(folder.File("run.toml"), ": student is '", student,
                                          "', expected linear, experts or network"));
}

}  // namespace mergeplan
