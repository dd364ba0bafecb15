#include "adapters/autoencoding/run.h"

#include <memory>
#include <utility>

#include "adapters/autoencoding/job.h"
#include "adapters/denoising/session.h"

namespace mergeplan {

int RunTrainVae(const TrainVaeArguments& arguments) {
  using autoencoding::Job;
  using denoising::Task;
  using denoising::TrainInfo;
  using TaskOr = absl::StatusOr<std::unique_ptr<Task>>;
  const denoising::TrainingCommand command = {
      "train-vae",
      {denoising::kAutoencoder},
      [&] { return TaskOr(Job::New(arguments)); },
      [&](const TrainInfo& info) { return Job::CheckSame(arguments, info); },
      [&](TrainInfo info) { return TaskOr(Job::Resumed(std::move(info), arguments.output)); }};
  return denoising::RunTraining(command, arguments);
}

}  // namespace mergeplan
