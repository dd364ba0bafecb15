#include "adapters/cases/mixture_run.h"

#include <limits>
#include <utility>

#include "adapters/cases/cases.h"
#include "adapters/cases/expert_options.h"
#include "adapters/cases/mixture_result.h"
#include "adapters/experts/state_file.h"
#include "adapters/runtime/strategy.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

constexpr char kCheckpoint[] = "/checkpoint.npz";

using experts::ErrorEstimate;
using experts::StudentRecord;

class MixtureRun : public RunCase {
 public:
  explicit MixtureRun(MixtureJob job) : job_(std::move(job)) {}

  const Plugin& plugin() const override { return *job_.plugin; }
  const std::map<std::string, std::string>& parameters() const override { return job_.parameters; }
  const PlanDocument& document() const override { return job_.document; }

  RunInfo Info() const override {
    RunInfo info = InfoOf(*job_.plugin, job_.parameters, job_.document);
    info.teacher = kMixtureTeacher;
    info.teacher_file = AbsolutePath(job_.teacher->path());
    info.teacher_sha256 = job_.teacher->sha256();
    info.student = kExpertsStudent;
    info.seed = static_cast<std::int64_t>(job_.seed);
    info.dtype = std::string(ToString(job_.options.precision));
    info.device = job_.device.ToString();
    info.batch = job_.options.batch;
    info.training = ToTexts(job_.options);
    info.prediction = "moments";
    info.fingerprint = job_.Fingerprint();
    return info;
  }

  absl::StatusOr<std::unique_ptr<Training>> Begin(const TrainingWatch& watch) const override {
    return MixtureTraining::Create(job_, {job_.seed}, watch);
  }

 private:
  MixtureJob job_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MixtureTraining>> MixtureTraining::Create(
    MixtureJob job, std::vector<std::uint64_t> seeds, const TrainingWatch& watch) {
  experts::ExecutorOptions options = job.options;
  options.seeds = std::move(seeds);
  options.stop = watch.stop;
  options.communicator = watch.communicator;
  if (watch.checkpoint) {
    options.checkpoint = [keep = watch.checkpoint](const experts::Executor&, bool forced) {
      return keep(forced);
    };
  }
  if (watch.progress) {
    options.progress = [show = watch.progress](const experts::ExecutorProgress& p) {
      show({p.updates_done, p.updates_total, p.merges_done, p.merges_total, p.first_of_group,
            p.group});
    };
  }
  MP_ASSIGN_OR_RETURN(experts::Executor executor,
                      experts::Executor::Create(job.teacher->mixture(), job.schedule,
                                                job.document.plan, std::move(options)));
  return std::unique_ptr<MixtureTraining>(new MixtureTraining(std::move(job), std::move(executor)));
}

absl::Status MixtureTraining::Complete() {
  return job_.document.plan.teacher_steps() == 1 ? executor_.Fit() : absl::OkStatus();
}

bool MixtureTraining::trained(int merge) const {
  for (int trial = 0; trial < executor_.trials(); ++trial) {
    if (!executor_.records(trial).merges[merge].trained) return false;
  }
  return true;
}

TrainResult MixtureTraining::Figures(int merge) const {
  const int trials = executor_.trials();
  TrainResult mean{false, executor_.records(0).merges[merge].updates, 0, 0, 0};
  for (int trial = 0; trial < trials; ++trial) {
    const StudentRecord& record = executor_.records(trial).merges[merge];
    mean.initial_loss += record.initial_loss / trials;
    mean.final_loss += record.final_loss / trials;
    mean.seconds += record.seconds / trials;
  }
  return mean;
}

absl::StatusOr<EvaluationResult> MixtureTraining::Evaluate() {
  const int trials = executor_.trials();
  EvaluationResult result;
  result.merges_trained = executor_.merges_trained() / trials;
  result.predicted = job_.model->Objective(job_.document.plan);
  result.achieved = 0;
  for (int trial = 0; trial < trials; ++trial) {
    MP_ASSIGN_OR_RETURN(const ErrorEstimate error, executor_.Evaluate(trial));
    result.achieved += error.mean / trials;
  }
  result.achieved_teacher = result.achieved;
  return result;
}

absl::Status MixtureTraining::WriteCheckpoint(const std::string& folder) const {
  return experts::WriteState(executor_.Save(), job_.Fingerprint(), folder + kCheckpoint);
}

absl::Status MixtureTraining::ReadCheckpoint(const std::string& folder) {
  MP_ASSIGN_OR_RETURN(experts::ExecutorState state,
                      experts::ReadState(job_.Fingerprint(), folder + kCheckpoint));
  return executor_.Restore(std::move(state));
}

absl::StatusOr<RunSummary> MixtureTraining::Summarize() {
  RunSummary summary;
  summary.strategy = job_.plugin->name();
  summary.reference = std::string(ToString(job_.document.reference));
  summary.predicted = job_.model->Objective(job_.document.plan);
  MP_ASSIGN_OR_RETURN(const ErrorEstimate error, executor_.Evaluate(0));
  summary.achieved = error.mean;
  summary.standard_error = error.standard_error;
  const experts::TrialRecord& trial = executor_.records(0);
  const auto add = [&](const StudentRecord& record) {
    summary.seconds += record.seconds;
    summary.updates += record.updates;
    summary.teacher_calls += record.teacher_calls;
  };
  add(trial.fit);
  for (const StudentRecord& record : trial.merges) {
    add(record);
    summary.merges += record.trained ? 1 : 0;
  }
  return summary;
}

absl::Status MixtureTraining::WriteResult(const std::string& folder) {
  MP_ASSIGN_OR_RETURN(const RunSummary summary, Summarize());
  return WriteMixtureResult(job_, executor_, summary, folder);
}

absl::StatusOr<std::shared_ptr<const RunCase>> NewMixtureRun(const DistillArguments& arguments,
                                                             PlannerServices& services) {
  MP_ASSIGN_OR_RETURN(MixtureJob job, NewMixtureJob(arguments, services));
  return std::make_shared<MixtureRun>(std::move(job));
}

absl::StatusOr<std::shared_ptr<const RunCase>> ResumedMixtureRun(const DistillArguments& arguments,
                                                                 const RunFolder& folder) {
  MP_ASSIGN_OR_RETURN(MixtureJob job, ResumedMixtureJob(arguments, folder));
  return std::make_shared<MixtureRun>(std::move(job));
}

}  // namespace mergeplan
