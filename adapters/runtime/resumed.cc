#include "adapters/runtime/resumed.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/plan/io/evaluate.h"
#include "plugins/host/host.h"

namespace mergeplan {
namespace {

absl::Status CheckStrategy(const DistillArguments& arguments, const RunFolder& folder,
                           std::uint64_t traits) {
  const RunInfo& info = *folder.previous();
  if (!arguments.strategy || *arguments.strategy == info.strategy ||
      *arguments.strategy == info.plugin) {
    return absl::OkStatus();
  }
  const absl::StatusOr<std::shared_ptr<const Plugin>> named =
      LoadPlugin(*arguments.strategy, arguments.plugin_folders, traits);
  if (named.ok() && (*named)->name() == info.strategy) return absl::OkStatus();
  return DiffersFromRun(folder, "--strategy", *arguments.strategy, info.strategy);
}

absl::Status CheckPlan(const DistillArguments& arguments, const RunFolder& folder,
                       const PlanDocument& document) {
  if (!arguments.plan) return absl::OkStatus();
  MP_ASSIGN_OR_RETURN(const PlanDocument given, ReadPlan(*arguments.plan));
  MP_RETURN_IF_ERROR(CheckHasSchedule(given, *arguments.plan));
  // A mixture's run keeps its plan with the variances of the mixture.
  const bool same_question =
      folder.previous()->teacher != kAnalyticTeacher ||
      (given.variances == document.variances && given.budget.lr == document.budget.lr &&
       given.budget.iterations == document.budget.iterations);
  if (given.plan == document.plan && given.alpha == document.alpha && given.init == document.init &&
      same_question) {
    return absl::OkStatus();
  }
  return DiffersFromRun(folder, "--plan", *arguments.plan, "another plan");
}

absl::Status CheckPluginParameters(const DistillArguments& arguments, const RunFolder& folder) {
  const std::map<std::string, std::string>& had = folder.previous()->parameters;
  MP_ASSIGN_OR_RETURN(const auto parameters, ParseParameters(arguments.parameters));
  for (const auto& [name, value] : parameters) {
    const auto own = had.find(name);
    const std::string given = absl::StrCat(name, "=", value);
    if (own == had.end()) return DiffersFromRun(folder, "--set", given, "no such parameter");
    if (own->second != value) {
      return DiffersFromRun(folder, "--set", given, absl::StrCat(name, "=", own->second));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status DiffersFromRun(const RunFolder& folder, const std::string& option,
                            const std::string& given, const std::string& had) {
  return Misuse(absl::StrCat(option, " ", given, ": the run in ", folder.path(), " has ", had,
                             "; leave the option out, or begin another run"));
}

absl::Status CheckTraining(const RunFolder& folder, const std::map<std::string, std::string>& given,
                           const std::map<std::string, std::string>& had,
                           const CanonicalOptions& canonical) {
  MP_ASSIGN_OR_RETURN(const auto own, canonical(had));
  for (const auto& [option, value] : given) {
    // The whole with this one option as given: numbers may be written in other ways.
    std::map<std::string, std::string> changed = own;
    changed[option] = value;
    const auto other = canonical(changed);
    if (other.ok() && *other == own) continue;
    const auto found = own.find(option);
    return DiffersFromRun(folder, absl::StrCat("--", option), value,
                          found != own.end() ? found->second : "no such option");
  }
  return absl::OkStatus();
}

absl::StatusOr<PlanDocument> ResumedPlan(const DistillArguments& arguments, const RunFolder& folder,
                                         std::uint64_t traits) {
  const RunInfo& info = *folder.previous();
  const std::string plan_file = folder.File("plan.toml");
  if (arguments.teacher) {
    MP_ASSIGN_OR_RETURN(const TeacherName name, ParseTeacher(*arguments.teacher));
    if (name.kind != info.teacher) {
      return DiffersFromRun(folder, "--teacher", *arguments.teacher,
                            absl::StrCat(info.teacher, ":", info.teacher_file));
    }
  }
  const absl::StatusOr<std::string> plan_hash = Sha256OfFile(plan_file);
  if (!plan_hash.ok()) {
    return absl::Status(plan_hash.status().code(),
                        absl::StrCat(std::string(plan_hash.status().message()),
                                     "; expected the plan of this run: bring the file back, or "
                                     "begin another run"));
  }
  if (*plan_hash != info.plan_sha256) {
    return absl::DataLossError(
        absl::StrCat(plan_file, ": was changed since the run began (SHA-256 ", *plan_hash, ", ",
                     folder.File("run.toml"), " says ", info.plan_sha256,
                     "); bring the old file back, or begin another run"));
  }
  MP_ASSIGN_OR_RETURN(PlanDocument document, ReadPlan(plan_file));
  MP_RETURN_IF_ERROR(CheckHasSchedule(document, plan_file));
  MP_RETURN_IF_ERROR(CheckStrategy(arguments, folder, traits));
  MP_RETURN_IF_ERROR(CheckPlan(arguments, folder, document));
  MP_RETURN_IF_ERROR(CheckPluginParameters(arguments, folder));

  const auto differs = [&](const char* option, const std::string& given, const std::string& had) {
    return DiffersFromRun(folder, option, given, had);
  };
  if (arguments.seed && *arguments.seed != info.seed) {
    return differs("--seed", absl::StrCat(*arguments.seed), absl::StrCat(info.seed));
  }
  if (arguments.batch && *arguments.batch != info.batch) {
    return differs("--batch", absl::StrCat(*arguments.batch), absl::StrCat(info.batch));
  }
  if (arguments.dtype && *arguments.dtype != info.dtype) {
    return differs("--dtype", *arguments.dtype, info.dtype);
  }
  if (arguments.basis && *arguments.basis != info.basis) {
    return differs("--basis", *arguments.basis, info.basis);
  }
  return document;
}

}  // namespace mergeplan
