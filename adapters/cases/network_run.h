#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "adapters/cases/network_job.h"
#include "adapters/network/executor.h"
#include "adapters/runtime/training.h"

namespace mergeplan {

// Networks against a teacher of any kind.
class NetworkTraining : public Training {
 public:
  static absl::StatusOr<std::unique_ptr<NetworkTraining>> Create(NetworkJob job,
                                                                 const TrainingWatch& watch);

  network::Executor& executor() { return *executor_; }

  absl::Status Train(absl::Span<const int> merges) override { return executor_->Train(merges); }
  // A plan without merges has not asked for the fit.
  absl::Status Complete() override { return executor_->Fit(); }
  bool trained(int merge) const override { return executor_->records()[merge].trained; }
  TrainResult Figures(int merge) const override;
  std::vector<double> Curve(int merge) const override { return executor_->records()[merge].curve; }
  absl::StatusOr<EvaluationResult> Evaluate() override;
  void Hold(int merge) override { executor_->Hold(merge); }
  void Release(int merge) override { executor_->Release(merge); }
  absl::Status WriteCheckpoint(const std::string& folder) const override;
  absl::Status ReadCheckpoint(const std::string& folder) override;
  absl::StatusOr<RunSummary> Summarize() override;
  absl::Status WriteResult(const std::string& folder) override;

 private:
  NetworkTraining(NetworkJob job, std::string fingerprint,
                  std::unique_ptr<network::Executor> executor)
      : job_(std::move(job)),
        fingerprint_(std::move(fingerprint)),
        executor_(std::move(executor)) {}

  NetworkJob job_;
  std::string fingerprint_;
  std::unique_ptr<network::Executor> executor_;
};

// Of everything that determines the numbers of the run.
absl::StatusOr<std::string> FingerprintOf(const NetworkJob& job);

}  // namespace mergeplan
