#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "adapters/cases/executor.h"
#include "adapters/cases/gaussian_job.h"
#include "adapters/runtime/training.h"

namespace mergeplan {

// Linear students of the analytic Gaussian teacher.
class GaussianTraining : public Training {
 public:
  static absl::StatusOr<std::unique_ptr<GaussianTraining>> Create(Job job, std::uint64_t seed,
                                                                  const TrainingWatch& watch);

  const Executor& executor() const { return executor_; }

  absl::Status Train(absl::Span<const int> merges) override { return executor_.Train(merges); }
  bool trained(int merge) const override { return executor_.records()[merge].trained; }
  TrainResult Figures(int merge) const override;
  std::vector<double> Curve(int merge) const override { return executor_.records()[merge].curve; }
  absl::StatusOr<EvaluationResult> Evaluate() override;
  // Every trained operator stays in memory until the run ends: d numbers each.
  void Hold(int /*merge*/) override {}
  void Release(int /*merge*/) override {}
  absl::Status WriteCheckpoint(const std::string& folder) const override;
  absl::Status ReadCheckpoint(const std::string& folder) override;
  absl::StatusOr<RunSummary> Summarize() override;
  absl::Status WriteResult(const std::string& folder) override;

 private:
  GaussianTraining(Job job, Executor executor)
      : job_(std::move(job)), executor_(std::move(executor)) {}

  Job job_;
  Executor executor_;
};

}  // namespace mergeplan
