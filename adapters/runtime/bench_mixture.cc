#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/analytic/mixture.h"
#include "adapters/experts/executor.h"
#include "adapters/runtime/bench_case.h"
#include "planner/base/status_macros.h"
#include "planner/operators/model.h"
#include "planner/plan/costs.h"
#include "planner/schedule/schedule.h"
#include "plugins/abi/mergeplan_plugin.h"

namespace mergeplan {

struct MixtureFits {
  std::vector<experts::StudentRecord> trials;  // empty: not fitted yet
};
std::shared_ptr<MixtureFits> NoFits() { return std::make_shared<MixtureFits>(); }

namespace {

using experts::ErrorEstimate;
using experts::StudentRecord;

constexpr char kPrefix[] = "mixture:";
constexpr std::uint64_t kTraits =
    MERGEPLAN_TEACHER_PREDICTS_X0 | MERGEPLAN_TEACHER_DATA_FREE | MERGEPLAN_TEACHER_HAS_SPECTRUM;

// The executor as a strategy plugin drives it: the trials of a merge train side by side.
class ExpertsRuntime : public RuntimeInterface {
 public:
  ExpertsRuntime(experts::Executor& executor, double predicted, std::function<bool()> cancelled)
      : executor_(executor), predicted_(predicted), cancelled_(std::move(cancelled)) {}

  absl::StatusOr<TrainResult> TrainMerge(int merge) override {
    MP_ASSIGN_OR_RETURN(const std::vector<TrainResult> results, TrainRound({merge}));
    return results.front();
  }
  absl::StatusOr<std::vector<TrainResult>> TrainRound(absl::Span<const int> merges) override {
    MP_RETURN_IF_ERROR(executor_.Train(merges));
    std::vector<TrainResult> results;
    for (const int merge : merges) {
      TrainResult mean{false, executor_.records(0).merges[merge].updates, 0, 0, 0};
      for (int trial = 0; trial < executor_.trials(); ++trial) {
        const StudentRecord& record = executor_.records(trial).merges[merge];
        mean.initial_loss += record.initial_loss / executor_.trials();
        mean.final_loss += record.final_loss / executor_.trials();
        mean.seconds += record.seconds / executor_.trials();
      }
      results.push_back(mean);
    }
    return results;
  }
  absl::StatusOr<EvaluationResult> Evaluate() override {
    EvaluationResult result{executor_.merges_trained() / executor_.trials(), predicted_, 0, 0};
    for (int trial = 0; trial < executor_.trials(); ++trial) {
      MP_ASSIGN_OR_RETURN(const ErrorEstimate error, executor_.Evaluate(trial));
      result.achieved += error.mean / executor_.trials();
    }
    result.achieved_teacher = result.achieved;
    return result;
  }
  absl::Status Snapshot(int merge) override {
    executor_.Hold(merge);
    return absl::OkStatus();
  }
  absl::Status Release(int merge) override {
    executor_.Release(merge);
    return absl::OkStatus();
  }
  absl::Status Checkpoint() override { return absl::OkStatus(); }
  void Log(LogLevel /*level*/, std::string_view /*text*/) override {}
  void Progress(double /*fraction*/, std::string_view /*what*/) override {}
  bool Cancelled() override { return cancelled_(); }

 private:
  experts::Executor& executor_;
  double predicted_;
  std::function<bool()> cancelled_;
};

// What one strategy needs; copied for the other budget.
struct Parts {
  std::shared_ptr<const Plugin> plugin;
  std::map<std::string, std::string> parameters;
  std::shared_ptr<const MixtureTeacher> teacher;
  Schedule schedule;
  PlanDocument document;
  std::shared_ptr<const Model> model;  // of the Gaussian with the mixture's moments
  experts::ExecutorOptions options;    // without seeds and stop
  std::uint64_t seed = 0;
  std::shared_ptr<MixtureFits> fits;
};

class ExpertStudents : public BenchCase {
 public:
  explicit ExpertStudents(Parts parts) : parts_(std::move(parts)) {}

  const PlanDocument& document() const override { return parts_.document; }
  int batch() const override { return parts_.options.batch; }
  std::string basis() const override { return parts_.document.basis; }
  std::string training() const override {
    const experts::ExecutorOptions& options = parts_.options;
    std::string text = absl::StrFormat(
        "students: affine mixtures of %d experts (%d parameters), Adam with rate %g; predicted: "
        "linear students of the Gaussian with the same moments, s = %g (they know nothing of "
        "modes)",
        options.shape.experts, options.shape.parameters(), options.optimizer.lr,
        parts_.document.budget.train_time);
    if (parts_.fits->trials.empty()) return text;
    double error = 0;
    for (const StudentRecord& fit : parts_.fits->trials) {
      error += fit.final_loss / static_cast<double>(parts_.fits->trials.size());
    }
    absl::StrAppendFormat(&text,
                          "\nall start from fits to single steps: %d updates, mean squared error "
                          "%.3g a step",
                          options.fit_updates, error);
    return text;
  }

  std::int64_t shared_updates() const override { return parts_.options.fit_updates; }

  absl::StatusOr<std::shared_ptr<const BenchCase>> WithTotalBudget() const override {
    Parts parts = parts_;
    const Plan& plan = parts.document.plan;
    const int merges = plan.size();
    if (merges > 0) {
      const int all = plan.teacher_steps() - plan.student_steps();
      parts.options.iterations = std::max<std::int64_t>(
          1, std::llround(static_cast<double>(parts.options.iterations) * all / merges));
      ModelSpec spec = parts.model->spec();
      spec.budget = spec.budget.SharedOver(merges, all);
      MP_ASSIGN_OR_RETURN(Model model, Model::Create(std::move(spec)));
      parts.model = std::make_shared<Model>(std::move(model));
    }
    return std::make_shared<ExpertStudents>(std::move(parts));
  }

  BenchRow Row() const override {
    const Plan& plan = parts_.document.plan;
    BenchRow row;
    row.iterations = parts_.options.iterations;
    row.merges = plan.size();
    row.rounds = CostsOf(plan).rounds;
    row.updates = row.iterations * plan.size();
    row.teacher_calls = CostsOf(plan).teacher_calls * row.iterations * batch();
    row.predicted = parts_.model->Objective(plan);
    return row;
  }

  absl::Status Run(int trials, const BenchWatch& watch, BenchRow* row) const override {
    experts::ExecutorOptions options = parts_.options;
    options.stop = watch.stop;
    options.seeds.clear();
    for (int trial = 0; trial < trials; ++trial) {
      options.seeds.push_back(parts_.seed + static_cast<std::uint64_t>(trial));
    }
    const Plan& plan = parts_.document.plan;
    MP_ASSIGN_OR_RETURN(
        experts::Executor executor,
        experts::Executor::Create(parts_.teacher->mixture(), parts_.schedule, plan, options));
    if (!parts_.fits->trials.empty()) {
      experts::ExecutorState state = executor.Save();
      for (int k = 0; k < trials; ++k) state.trials[k].fit = parts_.fits->trials[k];
      MP_RETURN_IF_ERROR(executor.Restore(std::move(state)));
    } else {
      watch.begin(*row, 0);
      MP_RETURN_IF_ERROR(executor.Fit());
      for (int k = 0; k < trials; ++k) parts_.fits->trials.push_back(executor.records(k).fit);
    }
    watch.begin(*row, 0);
    ExpertsRuntime runtime(executor, row->predicted, watch.stop);
    MP_RETURN_IF_ERROR(parts_.plugin->Execute(plan, runtime, parts_.parameters));
    std::vector<double> errors;
    for (int trial = 0; trial < trials; ++trial) {
      MP_ASSIGN_OR_RETURN(const ErrorEstimate error, executor.Evaluate(trial));
      // One step and nothing to merge: the student is the fit itself. (Other blocks of one step are
      // the teacher's own.)
      errors.push_back(plan.teacher_steps() == 1 ? executor.records(trial).fit.teacher.mean
                                                 : error.mean);
      for (const StudentRecord& record : executor.records(trial).merges) {
        row->seconds += record.seconds / trials;
      }
    }
    row->achieved = row->achieved_teacher = SpreadOf(errors);
    row->achieved_surrogate.mean = std::numeric_limits<double>::quiet_NaN();
    return absl::OkStatus();
  }

 private:
  Parts parts_;
};

absl::Status CheckOptions(const DistillArguments& arguments, const ExpertArguments& experts) {
  if (arguments.reference && *arguments.reference != "teacher") {
    return Misuse(absl::StrCat("--reference ", *arguments.reference,
                               ": the students of a mixture are no linear operators, so only the "
                               "teacher can be the reference; leave the option out"));
  }
  if (arguments.device && *arguments.device != "cpu") {
    return Misuse(
        absl::StrCat("--device ", *arguments.device,
                     ": the students of a mixture train on the CPU; leave the option out"));
  }
  if (arguments.feature_norm || arguments.basis) {
    return Misuse(absl::StrCat(arguments.basis ? "--basis" : "--feature-norm",
                               ": means nothing for a mixture; leave the option out"));
  }
  if (!arguments.training.empty()) {
    return Misuse(absl::StrCat("--", arguments.training.begin()->first,
                               ": the students of a mixture are trained by Adam, as it is; leave "
                               "the option out"));
  }
  if (experts.train_time && !(*experts.train_time > 0 && std::isfinite(*experts.train_time))) {
    return Misuse(
        absl::StrCat("--train-time ", *experts.train_time, ": expected a positive, finite number"));
  }
  return absl::OkStatus();
}

absl::StatusOr<experts::ExecutorOptions> Options(const DistillArguments& arguments,
                                                 const ExpertArguments& experts_arguments,
                                                 int dimensions) {
  experts::ExecutorOptions options;
  options.shape.dimensions = dimensions;
  options.shape.experts = experts_arguments.experts.value_or(options.shape.experts);
  options.shape.hidden = experts_arguments.hidden.value_or(options.shape.hidden);
  options.fit_updates = experts_arguments.fit_iterations.value_or(options.fit_updates);
  options.iterations = arguments.iterations.value_or(options.iterations);
  options.batch = arguments.batch.value_or(options.batch);
  options.optimizer.lr = arguments.lr.value_or(options.optimizer.lr);
  if (options.iterations < 1) {
    return Misuse(absl::StrCat("--iterations ", options.iterations, ": expected 1 or more"));
  }
  constexpr int kMostRows = 1 << 24;
  if (options.batch > kMostRows) {
    return Misuse(absl::StrCat("--batch ", options.batch, ": expected 1 to ", kMostRows));
  }
  if (arguments.dtype) {
    const auto precision = experts::ParsePrecision(*arguments.dtype);
    if (!precision.ok()) {
      return Misuse(absl::StrCat("--dtype: ", std::string(precision.status().message())));
    }
    options.precision = *precision;
  }
  if (arguments.init) {
    const absl::StatusOr<Init> init = ParseInit(*arguments.init);
    if (!init.ok()) return AsMisuse(init.status());
    options.init = *init;
  }
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  options.threads = arguments.threads > 0 ? arguments.threads : static_cast<int>(cores);
  return options;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const BenchCase>> MixtureCase(const DistillArguments& arguments,
                                                             const ExpertArguments& experts,
                                                             std::shared_ptr<MixtureFits> fits,
                                                             PlannerServices& services) {
  MP_RETURN_IF_ERROR(CheckOptions(arguments, experts));
  if (!arguments.schedule) return Misuse("--schedule: missing, expected a name or a file");
  Parts parts;
  parts.fits = std::move(fits);
  parts.seed = static_cast<std::uint64_t>(arguments.seed.value_or(0));
  MP_ASSIGN_OR_RETURN(MixtureTeacher teacher,
                      MixtureTeacher::Load(arguments.teacher->substr(sizeof(kPrefix) - 1)));
  MP_ASSIGN_OR_RETURN(parts.options, Options(arguments, experts, teacher.dimensions()));
  absl::StatusOr<Schedule> schedule = LoadSchedule(*arguments.schedule, arguments.teacher_steps);
  if (!schedule.ok()) return AsMisuse(schedule.status());
  parts.schedule = *std::move(schedule);
  const int steps = parts.schedule.steps();
  const int blocks = arguments.student_steps.value_or(1);
  if (blocks < 1 || blocks > steps) {
    return Misuse(absl::StrCat("--student-steps ", blocks, ": expected 1..", steps));
  }

  // Plans are made, and errors predicted, for the Gaussian with the same moments.
  MP_ASSIGN_OR_RETURN(const Spectrum moments, teacher.MomentSpectrum());
  MP_ASSIGN_OR_RETURN(const Basis* basis, moments.FindBasis(moments.recommended_basis));
  PlanDocument& document = parts.document;
  document.schedule_spec = *arguments.schedule;
  document.alpha = parts.schedule.alpha;
  document.sigma = parts.schedule.sigma;
  document.data_scale = parts.schedule.data_scale;
  document.input = teacher.path();
  document.basis = basis->name;
  document.variances = basis->variances;
  document.input_sha256 = VariancesHash(document.variances);
  document.budget = Budget::Flow(experts.train_time.value_or(6.4));
  document.init = parts.options.init;
  document.reference = Reference::kTeacher;
  absl::StatusOr<Model> model = Model::Create(
      {parts.schedule, document.variances, {}, document.budget, document.init, document.reference});
  if (!model.ok()) return AsMisuse(model.status());
  parts.model = std::make_shared<Model>(*std::move(model));

  MP_ASSIGN_OR_RETURN(parts.parameters, ParseParameters(arguments.parameters));
  std::string name = arguments.strategy.value_or("dp_custom");
  if (arguments.plan) parts.parameters["plan"] = *arguments.plan;
  absl::StatusOr<std::shared_ptr<const Plugin>> plugin = LoadPlugin(name, arguments.plugin_folders);
  if (!plugin.ok()) {
    const bool by_name = name.find('/') == std::string::npos;
    return by_name && absl::IsNotFound(plugin.status())
               ? Misuse(absl::StrCat("--strategy: ", std::string(plugin.status().message())))
               : plugin.status();
  }
  parts.plugin = *std::move(plugin);
  MP_RETURN_IF_ERROR(CheckTeacher(parts.plugin->manifest(), kTraits));
  const absl::Status fit = CheckParameters(parts.plugin->manifest(), parts.parameters).status();
  if (!fit.ok()) return Misuse(absl::StrCat("--set: ", std::string(fit.message())));
  PlanRequest request;
  request.schedule = parts.schedule;
  request.student_steps = blocks;
  request.variances = document.variances;
  request.budget = document.budget;
  request.init = document.init;
  request.reference = document.reference;
  request.parameters = parts.parameters;
  MP_ASSIGN_OR_RETURN(document.plan, parts.plugin->MakePlan(request, services));
  parts.teacher = std::make_shared<MixtureTeacher>(std::move(teacher));
  return std::make_shared<ExpertStudents>(std::move(parts));
}

}  // namespace mergeplan
