#include "adapters/cases/gaussian_job.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/linear/embedding.h"
#include "adapters/runtime/resumed.h"
#include "adapters/runtime/strategy.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/plan/io/evaluate.h"
#include "planner/schedule/schedule.h"
#include "plugins/abi/mergeplan_plugin.h"

namespace mergeplan {
namespace {

constexpr int kDefaultBatch = 64;

constexpr std::uint64_t kAnalyticTraits =
    MERGEPLAN_TEACHER_PREDICTS_X0 | MERGEPLAN_TEACHER_DATA_FREE | MERGEPLAN_TEACHER_HAS_SPECTRUM;

// Are these the variances that the plan was made for? Bit for bit: the plan's file keeps them
// exactly.
absl::Status CheckVariances(const GaussianTeacher& teacher, const PlanDocument& document,
                            const std::string& plan_path) {
  const std::vector<double>& mine = teacher.variances();
  const std::vector<double>& planned = document.variances;
  if (mine.size() != planned.size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        plan_path, ": was made for ", planned.size(), " dimensions, the spectrum ", teacher.path(),
        " has ", mine.size(), "; give the spectrum that the plan was made from"));
  }
  const auto [a, b] = std::mismatch(mine.begin(), mine.end(), planned.begin());
  if (a == mine.end()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s: was made for other variances than those of the spectrum %s, basis %s (number %d is "
      "%.17g "
      "there, %.17g here); give the spectrum that the plan was made from, or plan again",
      plan_path, teacher.path(), teacher.basis(), a - mine.begin() + 1, *b, *a));
}

// The spectrum in the basis that the plan was made for. A plan made from bare variances fits the
// basis that has them.
absl::StatusOr<GaussianTeacher> TeacherFor(const std::string& spectrum, const std::string& basis,
                                           const PlanDocument& document,
                                           const std::string& plan_path) {
  const std::string wanted = document.basis == "given" ? basis : document.basis;
  MP_ASSIGN_OR_RETURN(GaussianTeacher teacher, GaussianTeacher::Load(spectrum, wanted));
  for (const char* other : {"diagonal", "dct", "pca"}) {
    if (!wanted.empty() || teacher.variances() == document.variances) break;
    absl::StatusOr<GaussianTeacher> second = GaussianTeacher::Load(spectrum, other);
    if (second.ok() && second->variances() == document.variances) teacher = *std::move(second);
  }
  MP_RETURN_IF_ERROR(CheckVariances(teacher, document, plan_path));
  return teacher;
}

absl::Status CheckDevice(const DistillArguments& arguments, DType* dtype, Device* device) {
  absl::StatusOr<DType> parsed = ParseDType(arguments.dtype.value_or("float64"));
  if (!parsed.ok())
    return AsMisuse(
        absl::Status(parsed.status().code(), absl::StrCat("--", parsed.status().message())));
  *dtype = *parsed;
  absl::StatusOr<Device> opened = OpenDevice(arguments.device.value_or("cpu"));
  if (!opened.ok()) {
    const absl::Status status(opened.status().code(),
                              absl::StrCat("--", opened.status().message()));
    return absl::IsInvalidArgument(status) ? AsMisuse(status) : status;
  }
  *device = *opened;
  return absl::OkStatus();
}

// How the merges are trained, from the options, with the budget (of the options, or of the plan).
absl::StatusOr<Recipe> RecipeOf(const DistillArguments& arguments, const Budget& budget) {
  absl::StatusOr<Recipe> recipe = Recipe::Parse(arguments.training);
  if (!recipe.ok()) return AsMisuse(recipe.status());
  MP_RETURN_IF_ERROR(AsMisuse(recipe->Validate(budget.iterations, budget.feature_norm)));
  return recipe;
}

// The squared norm of the feature where no option says it.
double DefaultFeatureNorm(const DistillArguments& arguments) {
  const auto student = arguments.training.find("student");
  const bool embedding = student != arguments.training.end() && student->second == "embedding";
  return embedding ? kEmbeddingNorm : 1.0;
}

// The question that a strategy is asked, from the options.
absl::StatusOr<PlanDocument> Question(const DistillArguments& arguments,
                                      const GaussianTeacher& teacher, Schedule* schedule) {
  absl::StatusOr<Schedule> loaded = LoadSchedule(*arguments.schedule, arguments.teacher_steps);
  if (!loaded.ok()) return AsMisuse(loaded.status());
  *schedule = *std::move(loaded);
  PlanDocument document;
  document.schedule_spec = *arguments.schedule;
  document.alpha = schedule->alpha;
  document.sigma = schedule->sigma;
  document.data_scale = schedule->data_scale;
  document.input = teacher.path();
  document.basis = teacher.basis();
  document.variances = teacher.variances();
  document.input_sha256 = VariancesHash(document.variances);
  document.budget =
      Budget::Sgd(*arguments.lr, *arguments.iterations, arguments.batch.value_or(kDefaultBatch),
                  arguments.feature_norm.value_or(DefaultFeatureNorm(arguments)));
  if (arguments.init) {
    absl::StatusOr<Init> init = ParseInit(*arguments.init);
    if (!init.ok()) return AsMisuse(init.status());
    document.init = *init;
  }
  if (arguments.reference) {
    absl::StatusOr<Reference> reference = ParseReference(*arguments.reference);
    if (!reference.ok()) return AsMisuse(reference.status());
    document.reference = *reference;
  }
  const int steps = schedule->steps();
  const int blocks = arguments.student_steps.value_or(1);
  if (blocks < 1 || blocks > steps) {
    return Misuse(absl::StrCat("--student-steps ", blocks, ": expected 1..", steps));
  }
  return document;
}

}  // namespace

std::string Job::Fingerprint() const {
  std::string text = "mergeplan run 2\n";
  absl::StrAppend(&text, document.plan.teacher_steps(), " ", document.plan.ToString(), "\n");
  for (const std::vector<double>* table : {&document.alpha, &document.sigma, &document.variances}) {
    absl::StrAppend(&text, VariancesHash(*table), "\n");
  }
  absl::StrAppendFormat(&text, "%a %a %d %d %a %s\n", document.data_scale, document.budget.lr,
                        document.budget.iterations, document.budget.batch,
                        document.budget.feature_norm, std::string(ToString(document.init)));
  absl::StrAppend(&text, seed, " ", ToString(dtype), " ", device.cuda ? "cuda" : "cpu", "\n");
  for (const auto& [option, value] : recipe.Options()) {
    absl::StrAppend(&text, option, "=", value, "\n");
  }
  return Sha256(text);
}

std::string Job::Prediction() const {
  if (!recipe.has_prediction()) return "none";
  // The law is that of one fresh batch of the budget's size an update.
  const bool law = recipe.is_plain() && recipe.draws != Draws::kFixed && recipe.accumulate == 1;
  return law ? "law" : "mean";
}

absl::StatusOr<Job> NewJob(const DistillArguments& arguments, PlannerServices& services) {
  MP_RETURN_IF_ERROR(CheckArguments(arguments));
  DType dtype = DType::kFloat64;
  Device device;
  MP_RETURN_IF_ERROR(CheckDevice(arguments, &dtype, &device));
  MP_ASSIGN_OR_RETURN(const TeacherName teacher_name, ParseTeacher(*arguments.teacher));
  const std::string& spectrum = teacher_name.path;
  MP_ASSIGN_OR_RETURN(auto parameters, ParseParameters(arguments.parameters));
  const std::string basis = arguments.basis.value_or("");

  if (arguments.plan) {
    MP_ASSIGN_OR_RETURN(PlanDocument document, ReadPlan(*arguments.plan));
    MP_RETURN_IF_ERROR(CheckHasSchedule(document, *arguments.plan));
    MP_RETURN_IF_ERROR(CheckAgainstPlan(arguments, document, *arguments.plan));
    MP_ASSIGN_OR_RETURN(GaussianTeacher teacher,
                        TeacherFor(spectrum, basis, document, *arguments.plan));
    if (arguments.batch) document.budget.batch = *arguments.batch;
    MP_ASSIGN_OR_RETURN(const Recipe recipe, RecipeOf(arguments, document.budget));
    if (!parameters.try_emplace("plan", *arguments.plan).second) {
      return Misuse(absl::StrCat("--set plan=", parameters["plan"],
                                 ": the plan is given by --plan; leave one of them out"));
    }
    MP_ASSIGN_OR_RETURN(auto plugin,
                        NewPlugin(kPlanPlugin, arguments, parameters, kAnalyticTraits));
    PlanRequest request = RequestOf(document, ScheduleOf(document), document.plan.student_steps());
    request.parameters = parameters;
    MP_ASSIGN_OR_RETURN(const Plan plan, plugin->MakePlan(request, services));
    if (!(plan == document.plan)) {
      return absl::InternalError(
          absl::StrCat("plugin ", plugin->name(), ": made another plan of ", *arguments.plan));
    }
    MP_ASSIGN_OR_RETURN(Model model, ModelOf(document));
    return Job{std::move(plugin),
               std::move(parameters),
               std::move(teacher),
               std::move(document),
               std::move(model),
               static_cast<std::uint64_t>(arguments.seed.value_or(0)),
               dtype,
               device,
               recipe,
               arguments.threads};
  }

  MP_ASSIGN_OR_RETURN(auto plugin,
                      NewPlugin(*arguments.strategy, arguments, parameters, kAnalyticTraits));
  MP_ASSIGN_OR_RETURN(GaussianTeacher teacher, GaussianTeacher::Load(spectrum, basis));
  Schedule schedule;
  MP_ASSIGN_OR_RETURN(PlanDocument document, Question(arguments, teacher, &schedule));
  MP_ASSIGN_OR_RETURN(const Recipe recipe, RecipeOf(arguments, document.budget));
  // The rate, the start and the reference are judged before the plugin is asked: these errors are
  // about the options.
  ModelSpec spec{schedule,        document.variances, {},
                 document.budget, document.init,      document.reference};
  absl::StatusOr<Model> model = Model::Create(std::move(spec));
  if (!model.ok() && !recipe.is_plain()) {
    return Misuse(absl::StrCat(std::string(model.status().message()),
                               "; plans are made for plain SGD with this rate, however the merges "
                               "are then trained"));
  }
  if (!model.ok()) return AsMisuse(model.status());
  PlanRequest request =
      RequestOf(document, std::move(schedule), arguments.student_steps.value_or(1));
  request.parameters = parameters;
  MP_ASSIGN_OR_RETURN(document.plan, plugin->MakePlan(request, services));
  MP_RETURN_IF_ERROR(ComputeFigures(*model, &document));
  document.status = "unchecked";
  document.guarantee = absl::StrCat("the plan of the strategy ", plugin->name(),
                                    "; not compared with any other plan");
  return Job{std::move(plugin),
             std::move(parameters),
             std::move(teacher),
             std::move(document),
             *std::move(model),
             static_cast<std::uint64_t>(arguments.seed.value_or(0)),
             dtype,
             device,
             recipe};
}

absl::StatusOr<Job> ResumedJob(const DistillArguments& arguments, const RunFolder& folder) {
  const RunInfo& info = *folder.previous();
  const std::string plan_file = folder.File("plan.toml");
  MP_ASSIGN_OR_RETURN(PlanDocument document, ResumedPlan(arguments, folder, kAnalyticTraits));
  MP_RETURN_IF_ERROR(CheckAgainstPlan(arguments, document, plan_file));
  const absl::StatusOr<Recipe> recipe = Recipe::Parse(info.training);
  if (!recipe.ok()) {
    return absl::DataLossError(absl::StrCat(
        folder.File("run.toml"), ": training: ", std::string(recipe.status().message())));
  }
  MP_RETURN_IF_ERROR(
      CheckTraining(folder, arguments.training, info.training,
                    [](const auto& texts) -> absl::StatusOr<std::map<std::string, std::string>> {
                      MP_ASSIGN_OR_RETURN(const auto options, Recipe::Parse(texts));
                      return options.Options();
                    }));
  DistillArguments settled = arguments;
  settled.dtype = info.dtype;
  if (!settled.device) settled.device = info.device;
  DType dtype = DType::kFloat64;
  Device device;
  MP_RETURN_IF_ERROR(CheckDevice(settled, &dtype, &device));

  std::string spectrum = info.teacher_file;
  if (arguments.teacher) {
    MP_ASSIGN_OR_RETURN(const TeacherName name, ParseTeacher(*arguments.teacher));
    spectrum = name.path;
  }
  absl::StatusOr<GaussianTeacher> loaded = GaussianTeacher::Load(spectrum, info.basis);
  if (!loaded.ok()) {
    return absl::Status(
        loaded.status().code(),
        absl::StrCat(std::string(loaded.status().message()),
                     "; expected the spectrum that the run in ", folder.path(),
                     " began with: bring it back, or say where it is now by --teacher"));
  }
  GaussianTeacher teacher = *std::move(loaded);
  MP_RETURN_IF_ERROR(CheckVariances(teacher, document, plan_file));
  MP_ASSIGN_OR_RETURN(auto plugin, OldPlugin(info, arguments, kAnalyticTraits));
  MP_ASSIGN_OR_RETURN(Model model, ModelOf(document));
  Job job{std::move(plugin),
          info.parameters,
          std::move(teacher),
          std::move(document),
          std::move(model),
          static_cast<std::uint64_t>(info.seed),
          dtype,
          device,
          *recipe,
          arguments.threads};
  if (job.Fingerprint() != info.fingerprint) {
    return DiffersFromRun(folder, "--device", device.ToString(), info.device);
  }
  return job;
}

}  // namespace mergeplan
