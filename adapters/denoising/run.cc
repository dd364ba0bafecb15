#include "adapters/denoising/run.h"

#include <memory>
#include <utility>

#include "adapters/denoising/job.h"
#include "adapters/denoising/session.h"
#include "planner/base/status_macros.h"

namespace mergeplan {

int RunTrainTeacher(const TrainTeacherArguments& arguments) {
  using denoising::Job;
  using denoising::Task;
  using denoising::TrainInfo;
  const denoising::TrainingCommand command = {
      "train-teacher",
      {kUnetTeacher, kScriptTeacher},
      [&]() -> absl::StatusOr<std::unique_ptr<Task>> {
        MP_ASSIGN_OR_RETURN(Job job, denoising::NewJob(arguments));
        return std::make_unique<Job>(std::move(job));
      },
      [&](const TrainInfo& info) { return denoising::CheckSameOptions(arguments, info); },
      [&](TrainInfo info) -> absl::StatusOr<std::unique_ptr<Task>> {
        MP_ASSIGN_OR_RETURN(Job job, denoising::ResumedJob(std::move(info), arguments.output));
        return std::make_unique<Job>(std::move(job));
      }};
  return denoising::RunTraining(command, arguments);
}

}  // namespace mergeplan
