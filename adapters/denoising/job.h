#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/denoising/batches.h"
#include "adapters/denoising/folder.h"
#include "adapters/denoising/model.h"
#include "adapters/denoising/options.h"
#include "adapters/denoising/run.h"
#include "adapters/denoising/session.h"
#include "planner/schedule/schedule.h"

namespace mergeplan::denoising {

// The training of a teacher.
class Job : public Task {
 public:
  const Options& options() const override { return settings; }
  TrainInfo& info() override { return about; }
  std::string note() const override { return remark; }
  absl::StatusOr<std::unique_ptr<Trainer>> MakeTrainer() override;
  absl::Status Write(const network::Module& network, const std::string& folder) const override;
  // What it draws; nothing where it draws no pixels.
  absl::StatusOr<std::string> Picture(network::Module& network) const override;

  Options settings;
  Model model;
  Schedule schedule;        // the levels that are trained
  std::string scaling;      // how values became data
  at::Tensor data, labels;  // the latter where the network is told classes
  at::Device device = at::kCPU;
  TrainInfo about;
  std::string remark;
};

// Of the options given. Misuse for options that cannot be; errors of what is read. Writes nothing.
absl::StatusOr<Job> NewJob(const TrainTeacherArguments& arguments);
// Of a training that goes on. FAILED_PRECONDITION where the data is not what it was.
absl::StatusOr<Job> ResumedJob(TrainInfo info, const std::string& folder);
// Do options that are given with --resume say what the training says? Misuse names the first that
// does not.
absl::Status CheckSameOptions(const TrainTeacherArguments& arguments, const TrainInfo& info);

// `steps` of a schedule's levels, evenly by number, the noisiest among them: level round(T k / N).
// All of them where there are not so many.
Schedule Thinned(const Schedule& schedule, int steps);

}  // namespace mergeplan::denoising
