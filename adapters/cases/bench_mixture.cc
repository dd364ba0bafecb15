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
#include "adapters/cases/cases.h"
#include "adapters/cases/mixture_run.h"
#include "adapters/runtime/plugin_runtime.h"
#include "planner/base/status_macros.h"
#include "planner/plan/costs.h"

namespace mergeplan {

struct MixtureFits {
  std::vector<experts::StudentRecord> trials;  // empty: not fitted yet
};
std::shared_ptr<MixtureFits> NoFits() { return std::make_shared<MixtureFits>(); }

namespace {

using experts::ErrorEstimate;
using experts::StudentRecord;

class ExpertStudents : public BenchCase {
 public:
  ExpertStudents(MixtureJob job, std::shared_ptr<MixtureFits> fits)
      : job_(std::move(job)), fits_(std::move(fits)) {}

  const PlanDocument& document() const override { return job_.document; }
  int batch() const override { return job_.options.batch; }
  std::string basis() const override { return job_.document.basis; }
  std::string training() const override {
    const experts::ExecutorOptions& options = job_.options;
    std::string text = absl::StrFormat(
        "students: affine mixtures of %d experts (%d parameters), Adam with rate %g; predicted: "
        "linear students of the Gaussian with the same moments, s = %g (they know nothing of "
        "modes)",
        options.shape.experts, options.shape.parameters(), options.optimizer.lr,
        job_.document.budget.train_time);
    if (job_.device.cuda) absl::StrAppend(&text, "; trained on ", job_.device.ToString());
    if (fits_->trials.empty()) return text;
    double error = 0;
    for (const StudentRecord& fit : fits_->trials) {
      error += fit.final_loss / static_cast<double>(fits_->trials.size());
    }
    absl::StrAppendFormat(&text,
                          "\nall start from fits to single steps: %d updates, mean squared error "
                          "%.3g a step",
                          options.fit_updates, error);
    return text;
  }

  std::int64_t shared_updates() const override { return job_.options.fit_updates; }

  absl::StatusOr<std::shared_ptr<const BenchCase>> WithTotalBudget() const override {
    MixtureJob job = job_;
    const Plan& plan = job.document.plan;
    const int merges = plan.size();
    if (merges > 0) {
      const int all = plan.teacher_steps() - plan.student_steps();
      job.options.iterations = std::max<std::int64_t>(
          1, std::llround(static_cast<double>(job.options.iterations) * all / merges));
      ModelSpec spec = job.model->spec();
      spec.budget = spec.budget.SharedOver(merges, all);
      MP_ASSIGN_OR_RETURN(Model model, Model::Create(std::move(spec)));
      job.model = std::make_shared<Model>(std::move(model));
    }
    return std::make_shared<ExpertStudents>(std::move(job), fits_);
  }

  BenchRow Row() const override {
    const Plan& plan = job_.document.plan;
    BenchRow row;
    row.iterations = job_.options.iterations;
    row.merges = plan.size();
    row.rounds = CostsOf(plan).rounds;
    row.updates = row.iterations * plan.size();
    row.teacher_calls = CostsOf(plan).teacher_calls * row.iterations * batch();
    row.predicted = job_.model->Objective(plan);
    return row;
  }

  absl::Status Run(int trials, const BenchWatch& watch, BenchRow* row) const override {
    std::vector<std::uint64_t> seeds;
    for (int trial = 0; trial < trials; ++trial) {
      seeds.push_back(job_.seed + static_cast<std::uint64_t>(trial));
    }
    TrainingWatch training_watch;
    training_watch.stop = watch.stop;
    MP_ASSIGN_OR_RETURN(const auto training,
                        MixtureTraining::Create(job_, std::move(seeds), training_watch));
    experts::Executor& executor = training->executor();
    if (!fits_->trials.empty()) {
      experts::ExecutorState state = executor.Save();
      for (int k = 0; k < trials; ++k) state.trials[k].fit = fits_->trials[k];
      MP_RETURN_IF_ERROR(executor.Restore(std::move(state)));
    } else {
      watch.begin(*row, 0);
      MP_RETURN_IF_ERROR(executor.Fit());
      for (int k = 0; k < trials; ++k) fits_->trials.push_back(executor.records(k).fit);
    }
    watch.begin(*row, 0);
    Checkpointer nowhere = Checkpointer::Nowhere();
    ProgressPrinter silent(job_.plugin->name(), /*quiet=*/true);
    Recorder unheard("", job_.document.plan);
    PluginRuntime runtime(*training, nowhere, silent, unheard, watch.stop);
    MP_RETURN_IF_ERROR(job_.plugin->Execute(job_.document.plan, runtime, job_.parameters));
    std::vector<double> errors;
    for (int trial = 0; trial < trials; ++trial) {
      MP_ASSIGN_OR_RETURN(const ErrorEstimate error, executor.Evaluate(trial));
      errors.push_back(error.mean);
      for (const StudentRecord& record : executor.records(trial).merges) {
        row->seconds += record.seconds / trials;
      }
    }
    row->achieved = row->achieved_teacher = SpreadOf(errors);
    row->achieved_surrogate.mean = std::numeric_limits<double>::quiet_NaN();
    return absl::OkStatus();
  }

 private:
  MixtureJob job_;
  std::shared_ptr<MixtureFits> fits_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const BenchCase>> MixtureCase(const DistillArguments& arguments,
                                                             std::shared_ptr<MixtureFits> fits,
                                                             PlannerServices& services) {
  MP_ASSIGN_OR_RETURN(MixtureJob job, NewMixtureJob(arguments, services));
  return std::make_shared<ExpertStudents>(std::move(job), std::move(fits));
}

}  // namespace mergeplan
