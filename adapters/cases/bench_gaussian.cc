#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/cases/bench_judged.h"
#include "adapters/cases/cases.h"
#include "adapters/cases/gaussian_job.h"
#include "adapters/cases/gaussian_run.h"
#include "adapters/runtime/plugin_runtime.h"
#include "adapters/runtime/progress.h"
#include "planner/base/status_macros.h"
#include "planner/operators/law.h"
#include "planner/plan/costs.h"
#include "planner/plan/io/evaluate.h"

namespace mergeplan {
namespace {

class LinearStudents : public BenchCase {
 public:
  LinearStudents(Job job, std::shared_ptr<judge::Judge> judge)
      : job_(std::move(job)), judge_(std::move(judge)) {}

  const PlanDocument& document() const override { return job_.document; }
  int batch() const override { return job_.document.budget.batch; }
  std::string basis() const override { return job_.teacher.basis(); }
  std::string training() const override {
    std::string text = absl::StrCat("linear students, rate ", job_.document.budget.lr);
    for (const auto& [option, value] : job_.recipe.Options()) {
      absl::StrAppend(&text, ", ", option, " ", value);
    }
    return text;
  }

  absl::StatusOr<std::shared_ptr<const BenchCase>> WithTotalBudget() const override {
    Job job = job_;
    const Plan& plan = job_.document.plan;
    job.document.budget =
        job_.document.budget.SharedOver(plan.size(), plan.teacher_steps() - plan.student_steps());
    MP_ASSIGN_OR_RETURN(job.model, ModelOf(job.document));
    return std::make_shared<LinearStudents>(std::move(job), judge_);
  }

  absl::StatusOr<std::optional<JudgedSamples>> JudgeTeacher(
      const BenchWatch& watch) const override {
    if (judge_ == nullptr) return std::optional<JudgedSamples>();
    JudgedTrials trials;
    MP_RETURN_IF_ERROR(trials.LookAtTeacher(
        *judge_, SamplesOfOperator(job_, job_.model.tau(Reference::kTeacher)), watch.stop));
    return trials.Result();
  }

  BenchRow Row() const override {
    const Plan& plan = job_.document.plan;
    BenchRow row;
    row.iterations = job_.document.budget.iterations;
    row.merges = plan.size();
    row.rounds = CostsOf(plan).rounds;
    row.updates = row.iterations * plan.size();
    row.teacher_calls = CostsOf(plan).teacher_calls * row.iterations * batch();
    // As the recipe has it, the mean over the noise; for plain SGD the objective of the plan.
    const auto training = GaussianTraining::Create(job_, job_.seed, {});
    // The student of one fixed batch is off its prediction by what that batch is off.
    const bool predicted = training.ok() && job_.recipe.draws != Draws::kFixed;
    row.predicted = predicted ? job_.model.Objective((*training)->executor().PredictedValue(),
                                                     job_.document.reference)
                              : std::numeric_limits<double>::quiet_NaN();
    return row;
  }

  absl::Status Run(int trials, const BenchWatch& watch, BenchRow* row) const override {
    if (job_.recipe.is_plain() && job_.recipe.draws != Draws::kFixed &&
        job_.recipe.accumulate == 1) {
      MP_ASSIGN_OR_RETURN(const ValueLaw law, LawOfValue(job_.model, job_.document.plan));
      row->expected = ExpectedObjective(job_.model, law, job_.document.reference);
    }
    Errors errors;
    JudgedTrials judged;
    for (int trial = 0; trial < trials; ++trial) {
      watch.begin(*row, trial);
      MP_RETURN_IF_ERROR(RunTrial(trial, watch, *row, &errors, &judged));
    }
    row->judged = judged.Result();
    row->achieved = SpreadOf(errors.achieved);
    row->achieved_surrogate = SpreadOf(errors.surrogate);
    row->achieved_teacher = SpreadOf(errors.teacher);
    row->seconds = errors.seconds / trials;
    return absl::OkStatus();
  }

 private:
  struct Errors {
    std::vector<double> achieved, surrogate, teacher;  // one per trial
    double seconds = 0;
  };

  absl::Status RunTrial(int trial, const BenchWatch& watch, const BenchRow& row, Errors* errors,
                        JudgedTrials* judged) const {
    TrainingWatch training_watch;
    training_watch.stop = watch.stop;
    MP_ASSIGN_OR_RETURN(const auto training,
                        GaussianTraining::Create(
                            job_, job_.seed + static_cast<std::uint64_t>(trial), training_watch));
    Checkpointer nowhere = Checkpointer::Nowhere();
    ProgressPrinter silent(job_.plugin->name(), /*quiet=*/true);
    Recorder unheard("", job_.document.plan);
    PluginRuntime runtime(*training, nowhere, silent, unheard, watch.stop);
    MP_RETURN_IF_ERROR(job_.plugin->Execute(job_.document.plan, runtime, job_.parameters));
    const Executor& executor = training->executor();
    const std::vector<double> value = executor.Value();
    errors->achieved.push_back(job_.model.Objective(value, job_.document.reference));
    errors->surrogate.push_back(job_.model.Objective(value, Reference::kSurrogate));
    errors->teacher.push_back(job_.model.Objective(value, Reference::kTeacher));
    for (const TrainedMerge& record : executor.records()) errors->seconds += record.seconds;
    if (judge_ == nullptr) return absl::OkStatus();
    return judged->Look(*judge_, SamplesOfOperator(job_, value),
                        trial == 0 ? PictureName(row.strategy, row.total_budget) : "", watch.stop);
  }

  Job job_;
  std::shared_ptr<judge::Judge> judge_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const BenchCase>> GaussianCase(const DistillArguments& arguments,
                                                              std::shared_ptr<judge::Judge> judge,
                                                              PlannerServices& services) {
  MP_ASSIGN_OR_RETURN(Job job, NewJob(arguments, services));
  if (judge != nullptr) {
    MP_RETURN_IF_ERROR(judge->Prepare(job.teacher.shape(), job.teacher.scaling(),
                                      SamplesOfOperator(job, job.model.tau(Reference::kTeacher)),
                                      [] { return false; }));
  }
  return std::make_shared<LinearStudents>(std::move(job), std::move(judge));
}

}  // namespace mergeplan
