#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/cases/bench_judged.h"
#include "adapters/cases/bench_probe.h"
#include "adapters/cases/cases.h"
#include "adapters/cases/network_data.h"
#include "adapters/cases/network_run.h"
#include "adapters/judge/judge.h"
#include "adapters/judge/peak_memory.h"
#include "adapters/network/inputs.h"
#include "adapters/runtime/plugin_runtime.h"
#include "planner/base/status_macros.h"
#include "planner/operators/model.h"
#include "planner/plan/io/evaluate.h"

namespace mergeplan {
namespace {

class NetworkStudents : public BenchCase {
 public:
  NetworkStudents(NetworkJob job, std::shared_ptr<judge::Judge> judge)
      : job_(std::move(job)), judge_(std::move(judge)) {}

  const PlanDocument& document() const override { return job_.document; }
  int batch() const override { return job_.batch; }
  std::string basis() const override { return job_.has_spectrum ? job_.document.basis : ""; }
  std::string training() const override {
    const NetworkOptions& options = job_.options;
    std::string text = absl::StrFormat(
        "students: %s%s:%s, %s with rate %g, inputs by %s, loss in %s",
        job_.copies_teacher ? "copies of " : "", job_.student.kind, job_.student.path,
        options.recipe.Options().at("optimizer"), options.lr, options.inputs, options.loss);
    if (job_.has_spectrum) {
      absl::StrAppendFormat(
          &text,
          "; predicted: linear students of data with the spectrum's variances, s = %g (they "
          "know nothing of networks)",
          job_.document.budget.train_time);
    }
    return text;
  }

  absl::StatusOr<std::shared_ptr<const BenchCase>> WithTotalBudget() const override {
    NetworkJob job = job_;
    const Plan& plan = job.document.plan;
    const int merges = plan.size();
    if (merges > 0) {
      const int all = plan.teacher_steps() - plan.student_steps();
      job.options.iterations = std::max<std::int64_t>(
          1, std::llround(static_cast<double>(job.options.iterations) * all / merges));
      job.document.budget = job.document.budget.SharedOver(merges, all);
      MP_ASSIGN_OR_RETURN(const Model model, ModelOf(job.document));
      job.document.objective_teacher = model.Objective(plan);
    }
    return std::make_shared<NetworkStudents>(std::move(job), judge_);
  }

  absl::StatusOr<BenchSpeed> Probe() const override { return ProbeNetworks(job_); }
  BenchNeeds Needs(const BenchSpeed& speed) const override {
    BenchNeeds needs = NeedsOf(job_, speed);
    if (judge_ != nullptr) {
      needs.seconds += SecondsOfSamples(job_, speed, judge_->options().samples);
    }
    return needs;
  }

  absl::StatusOr<std::optional<JudgedSamples>> JudgeTeacher(
      const BenchWatch& watch) const override {
    if (judge_ == nullptr) return std::optional<JudgedSamples>();
    JudgedTrials trials;
    MP_RETURN_IF_ERROR(trials.LookAtTeacher(*judge_, SamplesOfTeacher(job_), watch.stop));
    return trials.Result();
  }

  BenchRow Row() const override {
    const Plan& plan = job_.document.plan;
    BenchRow row;
    row.iterations = job_.options.iterations;
    row.merges = plan.size();
    row.rounds = plan.rounds();
    row.updates = row.iterations * plan.size();
    row.teacher_calls = TeacherCallsOf(job_);
    row.predicted = job_.has_spectrum ? job_.document.objective_teacher
                                      : std::numeric_limits<double>::quiet_NaN();
    return row;
  }

  absl::Status Run(int trials, const BenchWatch& watch, BenchRow* row) const override {
    std::vector<double> errors;
    std::int64_t updates = 0, calls = 0;  // of all trials, as they were made
    JudgedTrials judged;
    judge::ResetPeakMemory();
    for (int trial = 0; trial < trials; ++trial) {
      watch.begin(*row, trial);
      NetworkJob job = job_;
      job.seed += static_cast<std::uint64_t>(trial);
      // A pool of rollouts belongs to the seed: what a run with that seed would be trained on.
      if (job.options.inputs == "rollout") {
        MP_ASSIGN_OR_RETURN(
            job.inputs,
            network::MakeRolloutInputs(job.teacher, job.schedule, job.seed, job.options.pool_rows,
                                       StatesOf(*job.steps, job.device)));
      }
      TrainingWatch training_watch;
      training_watch.stop = watch.stop;
      MP_ASSIGN_OR_RETURN(const auto training,
                          NetworkTraining::Create(std::move(job), training_watch));
      Checkpointer nowhere = Checkpointer::Nowhere();
      ProgressPrinter silent(job_.plugin->name(), /*quiet=*/true);
      Recorder unheard("", job_.document.plan);
      PluginRuntime runtime(*training, nowhere, silent, unheard, watch.stop);
      MP_RETURN_IF_ERROR(job_.plugin->Execute(job_.document.plan, runtime, job_.parameters));
      MP_RETURN_IF_ERROR(training->Complete());
      MP_ASSIGN_OR_RETURN(const RunSummary summary, training->Summarize());
      errors.push_back(summary.achieved);
      row->seconds += summary.seconds / trials;
      AddLevels(training->executor(), trials, &row->levels);
      for (const network::StudentRecord& record : training->executor().records()) {
        updates += record.updates;
        calls += record.teacher_calls;
      }
      if (judge_ == nullptr) continue;
      const std::string name = PictureName(row->strategy, row->total_budget);
      MP_RETURN_IF_ERROR(judged.Look(*judge_, SamplesOfStudent(job_, training->executor()),
                                     trial == 0 ? name : "", watch.stop));
    }
    // Merges may have stopped early, and a pool asks only for the targets that were needed.
    row->updates = (updates + trials / 2) / trials;
    row->teacher_calls = (calls + trials / 2) / trials;
    row->judged = judged.Result();
    row->peak_memory_bytes = judge::PeakMemorySinceReset();
    row->achieved = row->achieved_teacher = SpreadOf(errors);
    row->achieved_surrogate.mean = std::numeric_limits<double>::quiet_NaN();
    return absl::OkStatus();
  }

 private:
  NetworkJob job_;
  std::shared_ptr<judge::Judge> judge_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const BenchCase>> NetworkCase(const DistillArguments& arguments,
                                                             std::shared_ptr<judge::Judge> judge,
                                                             PlannerServices& services) {
  if (arguments.training.contains("total-updates")) {
    return Misuse(
        "--total-updates: is a budget of one strategy; bench compares them under --budget");
  }
  MP_ASSIGN_OR_RETURN(NetworkJob job, NewNetworkJob(arguments, services));
  if (judge != nullptr) {
    // What is missing for it is said before anything is trained.
    MP_RETURN_IF_ERROR(judge->Prepare(job.student.signature.shape, job.student.signature.scaling,
                                      SamplesOfTeacher(job), [] { return false; }));
  }
  return std::make_shared<NetworkStudents>(std::move(job), std::move(judge));
}

}  // namespace mergeplan
