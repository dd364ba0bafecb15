#include "adapters/cases/gaussian_run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/cases/cases.h"
#include "adapters/cases/checkpoint.h"
#include "adapters/cases/gaussian_result.h"
#include "adapters/runtime/strategy.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

constexpr char kCheckpoint[] = "/checkpoint.npz";

class GaussianRun : public RunCase {
 public:
  explicit GaussianRun(Job job) : job_(std::move(job)) {}

  const Plugin& plugin() const override { return *job_.plugin; }
  const std::map<std::string, std::string>& parameters() const override { return job_.parameters; }
  const PlanDocument& document() const override { return job_.document; }

  RunInfo Info() const override {
    RunInfo info = InfoOf(*job_.plugin, job_.parameters, job_.document);
    info.teacher = kAnalyticTeacher;
    info.teacher_file = AbsolutePath(job_.teacher.path());
    info.teacher_sha256 = job_.teacher.sha256();
    info.student = kLinearStudent;
    info.basis = job_.teacher.basis();
    info.seed = static_cast<std::int64_t>(job_.seed);
    info.dtype = ToString(job_.dtype);
    info.device = job_.device.ToString();
    info.batch = job_.document.budget.batch;
    info.training = job_.recipe.Options();
    info.prediction = job_.Prediction();
    info.fingerprint = job_.Fingerprint();
    return info;
  }

  absl::StatusOr<std::unique_ptr<Training>> Begin(const TrainingWatch& watch) const override {
    return GaussianTraining::Create(job_, job_.seed, watch);
  }

 private:
  Job job_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GaussianTraining>> GaussianTraining::Create(
    Job job, std::uint64_t seed, const TrainingWatch& watch) {
  ExecutorOptions options;
  options.seed = seed;
  options.dtype = job.dtype;
  options.device = job.device;
  options.threads = job.threads;
  options.recipe = job.recipe;
  options.stop = watch.stop;
  if (watch.checkpoint) {
    options.checkpoint = [keep = watch.checkpoint](const Executor&, bool forced) {
      return keep(forced);
    };
  }
  options.progress = watch.progress;
  options.communicator = watch.communicator;
  MP_ASSIGN_OR_RETURN(Executor executor, Executor::Create(job.model, job.document.plan, options));
  return std::unique_ptr<GaussianTraining>(
      new GaussianTraining(std::move(job), std::move(executor)));
}

TrainResult GaussianTraining::Figures(int merge) const {
  const TrainedMerge& record = executor_.records()[merge];
  return {false, record.updates, record.initial_loss, record.final_loss, record.seconds};
}

absl::StatusOr<EvaluationResult> GaussianTraining::Evaluate() {
  const Model& model = executor_.model();
  EvaluationResult result;
  result.merges_trained = executor_.merges_trained();
  result.predicted = model.Objective(executor_.PredictedValue(), model.spec().reference);
  const std::vector<double> value = executor_.Value();
  result.achieved = model.Objective(value, model.spec().reference);
  result.achieved_teacher = model.Objective(value, Reference::kTeacher);
  return result;
}

absl::Status GaussianTraining::WriteCheckpoint(const std::string& folder) const {
  return mergeplan::WriteCheckpoint(executor_.Save(), job_.Fingerprint(), folder + kCheckpoint);
}

absl::Status GaussianTraining::ReadCheckpoint(const std::string& folder) {
  MP_ASSIGN_OR_RETURN(ExecutorState state,
                      mergeplan::ReadCheckpoint(job_.Fingerprint(), folder + kCheckpoint));
  return executor_.Restore(std::move(state));
}

absl::StatusOr<RunSummary> GaussianTraining::Summarize() {
  return mergeplan::Summarize(job_, executor_);
}

absl::Status GaussianTraining::WriteResult(const std::string& folder) {
  return mergeplan::WriteResult(job_, executor_, folder);
}

absl::StatusOr<std::shared_ptr<const RunCase>> NewGaussianRun(const DistillArguments& arguments,
                                                              PlannerServices& services) {
  MP_ASSIGN_OR_RETURN(Job job, NewJob(arguments, services));
  return std::make_shared<GaussianRun>(std::move(job));
}

absl::StatusOr<std::shared_ptr<const RunCase>> ResumedGaussianRun(const DistillArguments& arguments,
                                                                  const RunFolder& folder) {
  MP_ASSIGN_OR_RETURN(Job job, ResumedJob(arguments, folder));
  return std::make_shared<GaussianRun>(std::move(job));
}

}  // namespace mergeplan
