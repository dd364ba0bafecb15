#include "adapters/runtime/flow_question.h"

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/runtime/resumed.h"
#include "adapters/runtime/strategy.h"
#include "planner/base/status_macros.h"
#include "planner/operators/model.h"
#include "planner/plan/io/evaluate.h"

namespace mergeplan {
namespace {

absl::Status CheckTime(const std::optional<double>& time) {
  if (!time || (*time > 0 && std::isfinite(*time))) return absl::OkStatus();
  return Misuse(absl::StrCat("--train-time ", *time, ": expected a positive, finite number"));
}

absl::StatusOr<PlanDocument> FromPlan(const DistillArguments& arguments) {
  const std::string& path = *arguments.plan;
  MP_ASSIGN_OR_RETURN(PlanDocument document, ReadPlan(path));
  MP_RETURN_IF_ERROR(CheckHasSchedule(document, path));
  MP_RETURN_IF_ERROR(CheckScheduleAndStart(arguments, document, path));
  const std::optional<double>& time = arguments.experts.train_time;
  if (document.budget.sgd) {
    // Updates of linear students say nothing of these.
    document.budget = Budget::Flow(time.value_or(kDefaultTrainTime));
  } else if (time && *time != document.budget.train_time) {
    return Misuse(absl::StrCat("--train-time ", *time, ": the plan ", path, " was made for ",
                               document.budget.ToString(),
                               "; leave the option out or make another plan"));
  }
  return document;
}

absl::StatusOr<PlanDocument> FromOptions(const DistillArguments& arguments, Init init,
                                         Schedule* out) {
  if (!arguments.schedule) return Misuse("--schedule: missing, expected a name or a file");
  absl::StatusOr<Schedule> schedule = LoadSchedule(*arguments.schedule, arguments.teacher_steps);
  if (!schedule.ok()) return AsMisuse(schedule.status());
  PlanDocument document;
  // A file is named so that it is found from anywhere.
  std::error_code unknown;
  document.schedule_spec = std::filesystem::is_regular_file(*arguments.schedule, unknown)
                               ? AbsolutePath(*arguments.schedule)
                               : *arguments.schedule;
  document.alpha = schedule->alpha;
  document.sigma = schedule->sigma;
  document.data_scale = schedule->data_scale;
  document.budget = Budget::Flow(arguments.experts.train_time.value_or(kDefaultTrainTime));
  document.init = init;
  if (arguments.init) {
    const absl::StatusOr<Init> given = ParseInit(*arguments.init);
    if (!given.ok()) return AsMisuse(given.status());
    document.init = *given;
  }
  const int blocks = arguments.student_steps.value_or(1);
  if (blocks < 1 || blocks > schedule->steps()) {
    return Misuse(absl::StrCat("--student-steps ", blocks, ": expected 1..", schedule->steps()));
  }
  *out = *std::move(schedule);
  return document;
}

}  // namespace

absl::StatusOr<PlanDocument> FlowQuestion(const DistillArguments& arguments, Init init,
                                          Schedule* schedule) {
  MP_RETURN_IF_ERROR(CheckTime(arguments.experts.train_time));
  MP_ASSIGN_OR_RETURN(PlanDocument document, arguments.plan
                                                 ? FromPlan(arguments)
                                                 : FromOptions(arguments, init, schedule));
  if (arguments.plan) *schedule = ScheduleOf(document);
  document.reference = Reference::kTeacher;
  return document;
}

absl::StatusOr<std::map<std::string, std::string>> PluginParameters(
    const DistillArguments& arguments) {
  MP_ASSIGN_OR_RETURN(auto parameters, ParseParameters(arguments.parameters));
  if (arguments.plan && !parameters.try_emplace("plan", *arguments.plan).second) {
    return Misuse(absl::StrCat("--set plan=", parameters["plan"],
                               ": the plan is given by --plan; leave one of them out"));
  }
  return parameters;
}

absl::Status AnswerFlowQuestion(const DistillArguments& arguments, const Schedule& schedule,
                                const Plugin& plugin,
                                const std::map<std::string, std::string>& parameters,
                                PlannerServices& services, const std::string& about,
                                PlanDocument* document) {
  const absl::StatusOr<Model> model = ModelOf(*document);
  if (!model.ok()) return AsMisuse(model.status());
  const int blocks =
      arguments.plan ? document->plan.student_steps() : arguments.student_steps.value_or(1);
  PlanRequest request = RequestOf(*document, schedule, blocks);
  request.parameters = parameters;
  MP_ASSIGN_OR_RETURN(document->plan, plugin.MakePlan(request, services));
  MP_RETURN_IF_ERROR(ComputeFigures(*model, document));
  document->lower_bound = 0;
  document->status = "unchecked";
  document->guarantee = absl::StrCat("the plan of the strategy ", plugin.name(),
                                     ", with figures of linear students of ", about,
                                     "; not compared with any other plan");
  return absl::OkStatus();
}

absl::Status CheckTrainTime(const DistillArguments& arguments, const PlanDocument& document,
                            const RunFolder& folder) {
  const std::optional<double>& time = arguments.experts.train_time;
  if (!time || *time == document.budget.train_time) return absl::OkStatus();
  return DiffersFromRun(folder, "--train-time", absl::StrCat(*time), document.budget.ToString());
}

}  // namespace mergeplan
