#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/cases/mixture_job.h"
#include "adapters/experts/executor.h"
#include "adapters/runtime/training.h"

namespace mergeplan {

// Affine mixtures of experts against the optimal teacher of a Gaussian mixture; a seed or several,
// which train side by side. Figures are means over the seeds.
class MixtureTraining : public Training {
 public:
  static absl::StatusOr<std::unique_ptr<MixtureTraining>> Create(MixtureJob job,
                                                                 std::vector<std::uint64_t> seeds,
                                                                 const TrainingWatch& watch);

  experts::Executor& executor() { return executor_; }

  absl::Status Train(absl::Span<const int> merges) override { return executor_.Train(merges); }
  // A plan of one step has no merges: its student is the fit.
  absl::Status Complete() override;
  bool trained(int merge) const override;
  TrainResult Figures(int merge) const override;
  // Of the first seed.
  std::vector<double> Curve(int merge) const override {
    return executor_.records(0).merges[merge].curve;
  }
  absl::StatusOr<EvaluationResult> Evaluate() override;
  void Hold(int merge) override { executor_.Hold(merge); }
  void Release(int merge) override { executor_.Release(merge); }
  absl::Status WriteCheckpoint(const std::string& folder) const override;
  absl::Status ReadCheckpoint(const std::string& folder) override;
  absl::StatusOr<RunSummary> Summarize() override;
  // Of the first seed.
  absl::Status WriteResult(const std::string& folder) override;

 private:
  MixtureTraining(MixtureJob job, experts::Executor executor)
      : job_(std::move(job)), executor_(std::move(executor)) {}

  MixtureJob job_;
  experts::Executor executor_;
};

}  // namespace mergeplan
