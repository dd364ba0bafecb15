#include "adapters/cases/network_run.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/cases/cases.h"
#include "adapters/cases/network_data.h"
#include "adapters/cases/network_result.h"
#include "adapters/network/fingerprint.h"
#include "adapters/runtime/strategy.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

constexpr char kState[] = "/checkpoint.safetensors", kSnapshots[] = "/snapshots";

class NetworkRun : public RunCase {
 public:
  NetworkRun(NetworkJob job, std::string fingerprint)
      : job_(std::move(job)), fingerprint_(std::move(fingerprint)) {}

  const Plugin& plugin() const override { return *job_.plugin; }
  const std::map<std::string, std::string>& parameters() const override { return job_.parameters; }
  const PlanDocument& document() const override { return job_.document; }

  RunInfo Info() const override {
    RunInfo info = InfoOf(*job_.plugin, job_.parameters, job_.document);
    info.teacher = job_.teacher_name.kind;
    info.teacher_file = AbsolutePath(job_.teacher_name.path);
    info.teacher_sha256 = job_.teacher_sha256;
    info.student = kNetworkStudent;
    info.seed = static_cast<std::int64_t>(job_.seed);
    info.dtype = job_.dtype;
    info.device = job_.device.ToString();
    info.batch = job_.batch;
    info.training = job_.Texts();
    info.prediction = job_.has_spectrum ? "moments" : "none";
    info.fingerprint = fingerprint_;
    return info;
  }

  absl::StatusOr<std::unique_ptr<Training>> Begin(const TrainingWatch& watch) const override {
    return NetworkTraining::Create(job_, watch);
  }

 private:
  NetworkJob job_;
  std::string fingerprint_;
};

absl::StatusOr<std::shared_ptr<const RunCase>> MakeRun(NetworkJob job) {
  MP_ASSIGN_OR_RETURN(std::string fingerprint, FingerprintOf(job));
  return std::make_shared<NetworkRun>(std::move(job), std::move(fingerprint));
}

}  // namespace

absl::StatusOr<std::string> FingerprintOf(const NetworkJob& job) {
  MP_ASSIGN_OR_RETURN(const network::ExecutorOptions options, job.ExecutorOptions());
  MP_ASSIGN_OR_RETURN(const std::string own, network::FingerprintOf(*job.student.module, *job.steps,
                                                                    job.document.plan, options));
  // Said where it is not as it always was.
  std::string more =
      job.options.layout == "contiguous" ? "" : absl::StrCat(job.options.layout, "\n");
  if (!job.labels_sha256.empty()) absl::StrAppend(&more, "labels ", job.labels_sha256, "\n");
  return Sha256(absl::StrCat("mergeplan network run 1\n", own, "\n", job.teacher_name.kind, " ",
                             job.teacher_sha256, "\n", job.options.inputs, " ",
                             job.options.pool_rows, " ", job.data_sha256, "\n",
                             job.device.cuda ? "cuda" : "cpu", "\n", more));
}

absl::StatusOr<std::unique_ptr<NetworkTraining>> NetworkTraining::Create(
    NetworkJob job, const TrainingWatch& watch) {
  const bool several = watch.communicator != nullptr && watch.communicator->ranks() > 1;
  if (several && job.device.cuda) {
    return absl::UnimplementedError(absl::StrCat(
        "--device ", job.device.ToString(), ": networks train in ", watch.communicator->ranks(),
        " processes on the CPU only; leave out mpirun, or use --device cpu"));
  }
  MP_ASSIGN_OR_RETURN(network::ExecutorOptions options, job.ExecutorOptions());
  MP_ASSIGN_OR_RETURN(std::string fingerprint, FingerprintOf(job));
  if (!watch.folder.empty()) options.folder = watch.folder + kSnapshots;
  options.communicator = watch.communicator;
  // The first rank alone writes files.
  if (several && !watch.communicator->first()) options.memory = 0;
  options.stop = watch.stop;
  options.note = watch.note;
  if (job.device.cuda && job.options.cuda_graph) {
    const auto graphs = network::OpenCudaGraphs(job.device.index);
    if (graphs.ok()) {
      options.graphs = *graphs;
    } else if (watch.note) {
      watch.note(absl::StrCat("networks train without CUDA graphs: ", graphs.status().message()));
    }
  }
  if (watch.checkpoint) {
    options.checkpoint = [keep = watch.checkpoint](network::Executor&, bool forced) {
      return keep(forced);
    };
  }
  if (watch.progress) {
    options.progress = [show = watch.progress](const network::ExecutorProgress& p) {
      show({p.updates_done, p.updates_total, p.merges_done, p.merges_total, p.first_of_group,
            p.group});
    };
  }
  MP_ASSIGN_OR_RETURN(std::unique_ptr<network::Executor> executor,
                      network::Executor::Create(job.teacher, *job.student.module, *job.steps,
                                                job.inputs, job.document.plan, std::move(options)));
  return std::unique_ptr<NetworkTraining>(
      new NetworkTraining(std::move(job), std::move(fingerprint), std::move(executor)));
}

TrainResult NetworkTraining::Figures(int merge) const {
  const network::StudentRecord& record = executor_->records()[merge];
  return {false, record.updates, record.initial_loss, record.final_loss, record.seconds};
}

absl::StatusOr<EvaluationResult> NetworkTraining::Evaluate() {
  MP_ASSIGN_OR_RETURN(const std::vector<network::LevelError> errors, executor_->Evaluate());
  EvaluationResult result;
  result.merges_trained = executor_->merges_trained();
  if (job_.has_spectrum) result.predicted = job_.document.objective_teacher;
  result.achieved = result.achieved_teacher = errors.back().error.mean;
  return result;
}

absl::Status NetworkTraining::WriteCheckpoint(const std::string& folder) const {
  return executor_->WriteState(folder + kState, fingerprint_);
}

absl::Status NetworkTraining::ReadCheckpoint(const std::string& folder) {
  return executor_->ReadState(folder + kState, fingerprint_);
}

absl::StatusOr<RunSummary> NetworkTraining::Summarize() {
  RunSummary summary;
  summary.strategy = job_.plugin->name();
  summary.reference = std::string(ToString(job_.document.reference));
  summary.predicted = job_.has_spectrum ? job_.document.objective_teacher
                                        : std::numeric_limits<double>::quiet_NaN();
  // Of a run that was stopped there is no student yet that could be measured.
  summary.achieved = std::numeric_limits<double>::quiet_NaN();
  if (executor_->merges_trained() == static_cast<int>(executor_->records().size())) {
    MP_ASSIGN_OR_RETURN(const std::vector<network::LevelError> errors, executor_->Evaluate());
    summary.achieved = errors.back().error.mean;
    summary.standard_error = errors.back().error.standard_error;
  }
  const auto add = [&](const network::StudentRecord& record) {
    summary.seconds += record.seconds;
    summary.updates += record.updates;
    summary.teacher_calls += record.teacher_calls;
  };
  add(executor_->fit());
  for (const network::StudentRecord& record : executor_->records()) {
    add(record);
    summary.merges += record.trained ? 1 : 0;
  }
  return summary;
}

absl::Status NetworkTraining::WriteResult(const std::string& folder) {
  MP_ASSIGN_OR_RETURN(const RunSummary summary, Summarize());
  return WriteNetworkResult(job_, *executor_, summary, folder);
}

absl::StatusOr<std::shared_ptr<const RunCase>> NewNetworkRun(const DistillArguments& arguments,
                                                             PlannerServices& services) {
  MP_ASSIGN_OR_RETURN(NetworkJob job, NewNetworkJob(arguments, services));
  // What would end the run at once should not leave a folder.
  MP_RETURN_IF_ERROR(TryNetworks(*job.steps, *job.student.module, *job.teacher, job.device));
  MP_RETURN_IF_ERROR(NetworkTraining::Create(job, {}).status());
  return MakeRun(std::move(job));
}

absl::StatusOr<std::shared_ptr<const RunCase>> ResumedNetworkRun(const DistillArguments& arguments,
                                                                 const RunFolder& folder) {
  MP_ASSIGN_OR_RETURN(NetworkJob job, ResumedNetworkJob(arguments, folder));
  MP_ASSIGN_OR_RETURN(const std::string fingerprint, FingerprintOf(job));
  if (fingerprint != folder.previous()->fingerprint) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder.File("run.toml"),
                     ": the run began with another network, sidecar or kind of device "
                     "(--device ",
                     folder.previous()->device, "); bring them back, or begin another run"));
  }
  return std::make_shared<NetworkRun>(std::move(job), fingerprint);
}

}  // namespace mergeplan
