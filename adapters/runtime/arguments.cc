#include "adapters/runtime/arguments.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <type_traits>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/linear/recipe.h"
#include "adapters/runtime/network_options.h"
#include "planner/base/shortest.h"
#include "planner/base/status_macros.h"
#include "planner/runs/run_info.h"
#include "planner/schedule/schedule.h"

namespace mergeplan {
namespace {

constexpr char kMisuse[] = "mergeplan/misuse";
constexpr char kTeachers[] =
    "analytic:SPECTRUM.toml, mixture:MIXTURE.toml, script:MODEL.toml, unet:FOLDER";
constexpr const char* kKinds[] = {kAnalyticTeacher, kMixtureTeacher, kScriptTeacher, kUnetTeacher};

// As a person would write it: for a number the fewest digits that mean it.
template <typename T>
std::string Text(const T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    return ShortestText(value);
  } else {
    return absl::StrCat(value);
  }
}

template <typename T>
absl::Status Same(const std::string& plan_path, const char* option, const std::optional<T>& given,
                  const T& planned) {
  if (!given || *given == planned) return absl::OkStatus();
  return Misuse(absl::StrCat(option, " ", Text(*given), ": the plan ", plan_path, " was made for ",
                             Text(planned), "; leave the option out or make another plan"));
}

absl::Status SameSchedule(const DistillArguments& arguments, const PlanDocument& document,
                          const std::string& plan_path) {
  const int steps = document.plan.teacher_steps();
  MP_RETURN_IF_ERROR(Same(plan_path, "--teacher-steps", arguments.teacher_steps, steps));
  if (!arguments.schedule || *arguments.schedule == document.schedule_spec) {
    return absl::OkStatus();
  }
  absl::StatusOr<Schedule> schedule = LoadSchedule(*arguments.schedule, steps);
  if (!schedule.ok()) return AsMisuse(schedule.status());
  if (HasLevelsOf(*schedule, document)) return absl::OkStatus();
  return Misuse(absl::StrCat("--schedule ", *arguments.schedule, ": the plan ", plan_path,
                             " was made for ", document.schedule_spec,
                             "; leave the option out or make another plan"));
}

absl::Status CheckNoNetwork(const DistillArguments& a) {
  std::string option = a.network.given() != nullptr ? a.network.given() : "";
  for (const auto& [name, text] : a.training) {
    if (IsNetworkOption(name)) option = absl::StrCat("--", name);
  }
  if (option.empty()) return absl::OkStatus();
  return Misuse(absl::StrCat(option, ": is of network students; the teacher is ", *a.teacher,
                             ": name a network by --student-network, or leave the option out"));
}

// What the linear students of the analytic teacher need, and what they do not have.
absl::Status CheckLinear(const DistillArguments& a) {
  if (a.experts.any()) {
    const char* option = a.experts.fit_iterations ? "--fit-iterations"
                         : a.experts.experts      ? "--experts"
                         : a.experts.hidden       ? "--hidden"
                                                  : "--train-time";
    return Misuse(absl::StrCat(option, ": is of the students of a mixture, the teacher is ",
                               *a.teacher, "; leave the option out"));
  }
  // What stands beside a run's own options is judged with them.
  if (a.resume) return absl::OkStatus();
  MP_RETURN_IF_ERROR(AsMisuse(Recipe::Parse(a.training).status()));
  if (!a.strategy) return absl::OkStatus();
  if (!a.lr) return Misuse("--lr: missing, --strategy needs it");
  if (!a.iterations) return Misuse("--iterations: missing, --strategy needs it");
  return absl::OkStatus();
}

}  // namespace

absl::Status Misuse(const std::string& message) {
  return AsMisuse(absl::InvalidArgumentError(message));
}

absl::Status AsMisuse(const absl::Status& status) {
  absl::Status marked = status;
  if (!marked.ok()) marked.SetPayload(kMisuse, absl::Cord("1"));
  return marked;
}

bool IsMisuse(const absl::Status& status) { return status.GetPayload(kMisuse).has_value(); }

absl::Status CheckArguments(const DistillArguments& arguments) {
  const DistillArguments& a = arguments;
  // A shell variable that is not set should not be taken for an option that was left out.
  const std::pair<const char*, const std::optional<std::string>*> texts[] = {
      {"--plan", &a.plan},           {"--strategy", &a.strategy}, {"--schedule", &a.schedule},
      {"--init", &a.init},           {"--basis", &a.basis},       {"--teacher", &a.teacher},
      {"--reference", &a.reference}, {"--device", &a.device},     {"--dtype", &a.dtype}};
  for (const auto& [option, text] : texts) {
    if (text->has_value() && (*text)->empty()) {
      return Misuse(absl::StrCat(option, ": is empty, expected a value; give one or leave it out"));
    }
  }
  for (const auto& [option, text] : a.training) {
    if (text.empty()) {
      return Misuse(
          absl::StrCat("--", option, ": is empty, expected a value; give one or leave it out"));
    }
  }
  for (const std::string& folder : a.plugin_folders) {
    if (folder.empty()) return Misuse("--plugin-dir: is empty, expected a folder of plugins");
  }
  if (a.output.empty()) return Misuse("-o: is empty, expected the folder of the run");
  if (a.plan && a.strategy) {
    return Misuse(absl::StrCat("--plan ", *a.plan, " and --strategy ", *a.strategy,
                               ": give one of them; a plan is executed by dp_custom"));
  }
  if (!a.resume && !a.plan && !a.strategy) {
    return Misuse("--plan or --strategy: missing, expected one of them");
  }
  if (!a.resume && !a.teacher) {
    return Misuse(absl::StrCat("--teacher: missing, expected one of ", kTeachers));
  }
  if (a.strategy && !a.resume && !a.schedule) {
    return Misuse("--schedule: missing, --strategy needs it");
  }
  if (a.batch && *a.batch < 1) {
    return Misuse(absl::StrCat("--batch ", *a.batch, ": expected 1 or more"));
  }
  if (a.seed && *a.seed < 0) {
    return Misuse(absl::StrCat("--seed ", *a.seed, ": expected 0 or more"));
  }
  if (a.threads < 0) {
    return Misuse(absl::StrCat("--threads ", a.threads, ": expected 0 (all) or more"));
  }
  if (!(a.checkpoint_seconds >= 0)) {
    return Misuse(
        absl::StrCat("--checkpoint-seconds ", a.checkpoint_seconds, ": expected 0 or more"));
  }
  if (a.teacher) {
    MP_ASSIGN_OR_RETURN(const TeacherName name, ParseTeacher(*a.teacher));
    if (!HasNetworkStudents(a, name)) {
      MP_RETURN_IF_ERROR(CheckNoNetwork(a));
      if (name.kind == kAnalyticTeacher) MP_RETURN_IF_ERROR(CheckLinear(a));
    }
  }
  return ParseParameters(a.parameters).status();
}

absl::Status CheckScheduleAndStart(const DistillArguments& arguments, const PlanDocument& document,
                                   const std::string& plan_path) {
  MP_RETURN_IF_ERROR(SameSchedule(arguments, document, plan_path));
  MP_RETURN_IF_ERROR(
      Same(plan_path, "--student-steps", arguments.student_steps, document.plan.student_steps()));
  if (!arguments.init) return absl::OkStatus();
  const absl::StatusOr<Init> init = ParseInit(*arguments.init);
  if (!init.ok()) return AsMisuse(init.status());
  return Same(plan_path, "--init", arguments.init, std::string(ToString(document.init)));
}

absl::Status CheckAgainstPlan(const DistillArguments& arguments, const PlanDocument& document,
                              const std::string& plan_path) {
  const auto same = [&](const char* option, const auto& given, const auto& planned) {
    return Same(plan_path, option, given, planned);
  };
  MP_RETURN_IF_ERROR(CheckScheduleAndStart(arguments, document, plan_path));
  MP_RETURN_IF_ERROR(
      same("--reference", arguments.reference, std::string(ToString(document.reference))));
  if (document.basis != "given") {
    MP_RETURN_IF_ERROR(same("--basis", arguments.basis, document.basis));
  }
  if (!document.budget.sgd) {
    return Misuse(absl::StrFormat(
        "%s: was made for a gradient-flow time (--train-time %s); training needs a plan made with "
        "--lr and --iterations",
        plan_path, Text(document.budget.train_time)));
  }
  MP_RETURN_IF_ERROR(same("--lr", arguments.lr, document.budget.lr));
  MP_RETURN_IF_ERROR(same("--iterations", arguments.iterations, document.budget.iterations));
  return same("--feature-norm", arguments.feature_norm, document.budget.feature_norm);
}

bool HasLevelsOf(const Schedule& schedule, const PlanDocument& document) {
  const auto close = [](const std::vector<double>& a, const std::vector<double>& b) {
    if (a.size() != b.size()) return false;
    for (size_t t = 0; t < a.size(); ++t) {
      if (std::abs(a[t] - b[t]) > 1e-9 * (1 + std::abs(b[t]))) return false;
    }
    return true;
  };
  return close(schedule.alpha, document.alpha) && close(schedule.sigma, document.sigma);
}

absl::StatusOr<TeacherName> ParseTeacher(const std::string& teacher) {
  const size_t colon = teacher.find(':');
  TeacherName name{teacher.substr(0, colon), ""};
  if (colon == std::string::npos ||
      std::find(std::begin(kKinds), std::end(kKinds), name.kind) == std::end(kKinds)) {
    return Misuse(absl::StrCat("--teacher ", teacher, ": unknown kind of teacher '", name.kind,
                               "'; this version has: ", kTeachers));
  }
  name.path = teacher.substr(colon + 1);
  if (name.path.empty()) {
    return Misuse(absl::StrCat("--teacher ", teacher, ": no path, expected ", kTeachers));
  }
  return name;
}

bool IsNetwork(const TeacherName& name) {
  return name.kind == kScriptTeacher || name.kind == kUnetTeacher;
}

bool HasNetworkStudents(const DistillArguments& arguments, const TeacherName& teacher) {
  return IsNetwork(teacher) || arguments.network.student.has_value();
}

absl::StatusOr<std::map<std::string, std::string>> ParseParameters(
    const std::vector<std::string>& pairs) {
  std::map<std::string, std::string> out;
  for (const std::string& pair : pairs) {
    const size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return Misuse(absl::StrCat("--set ", pair, ": expected NAME=VALUE"));
    }
    if (!out.emplace(pair.substr(0, equals), pair.substr(equals + 1)).second) {
      return Misuse(absl::StrCat("--set ", pair, ": the name is given twice"));
    }
  }
  return out;
}

}  // namespace mergeplan
