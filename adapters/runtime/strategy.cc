#include "adapters/runtime/strategy.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mergeplan {

absl::StatusOr<std::shared_ptr<const Plugin>> NewPlugin(
    const std::string& name, const DistillArguments& arguments,
    const std::map<std::string, std::string>& parameters, std::uint64_t traits) {
  absl::StatusOr<std::shared_ptr<const Plugin>> plugin =
      LoadPlugin(name, arguments.plugin_folders, traits);
  if (!plugin.ok()) {
    const bool by_name = name.find('/') == std::string::npos;
    return by_name && absl::IsNotFound(plugin.status()) && arguments.strategy
               ? Misuse(absl::StrCat("--strategy: ", std::string(plugin.status().message())))
               : plugin.status();
  }
  const absl::Status fit = CheckParameters((*plugin)->manifest(), parameters).status();
  if (!fit.ok()) return Misuse(absl::StrCat("--set: ", std::string(fit.message())));
  return plugin;
}

absl::StatusOr<std::shared_ptr<const Plugin>> OldPlugin(const RunInfo& info,
                                                        const DistillArguments& arguments,
                                                        std::uint64_t traits) {
  absl::StatusOr<std::shared_ptr<const Plugin>> plugin =
      LoadPlugin(info.plugin, arguments.plugin_folders, traits);
  if (!plugin.ok()) plugin = LoadPlugin(info.strategy, arguments.plugin_folders, traits);
  return plugin;
}

RunInfo InfoOf(const Plugin& plugin, const std::map<std::string, std::string>& parameters,
               const PlanDocument& document) {
  RunInfo info;
  info.strategy = plugin.name();
  info.plugin = AbsolutePath(plugin.manifest().path);
  info.plugin_version = plugin.manifest().version;
  info.parameters = parameters;
  info.variances_sha256 = VariancesHash(document.variances);
  info.basis = document.basis;
  return info;
}

std::string AbsolutePath(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).string();
}

Schedule ScheduleOf(const PlanDocument& document) {
  Schedule schedule;
  schedule.spec = schedule.name = document.schedule_spec;
  schedule.alpha = document.alpha;
  schedule.sigma = document.sigma;
  schedule.level_scale.assign(document.alpha.size(), 1.0);
  schedule.data_scale = document.data_scale;
  return schedule;
}

absl::StatusOr<Schedule> WholeScheduleOf(const PlanDocument& document) {
  const std::string next =
      "; networks are told timesteps and native noise, which a plan does not keep: bring the "
      "schedule's file back where it was, or plan again";
  absl::StatusOr<Schedule> loaded =
      LoadSchedule(document.schedule_spec, document.plan.teacher_steps());
  if (!loaded.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the plan's schedule '", document.schedule_spec, "' cannot be loaded (",
                     std::string(loaded.status().message()), ")", next));
  }
  if (!HasLevelsOf(*loaded, document)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the plan's schedule '", document.schedule_spec,
                     "' has other noise levels now than the plan", next));
  }
  loaded->alpha = document.alpha;
  loaded->sigma = document.sigma;
  return loaded;
}

PlanRequest RequestOf(const PlanDocument& document, Schedule schedule, int student_steps) {
  PlanRequest request;
  request.schedule = std::move(schedule);
  request.student_steps = student_steps;
  request.variances = document.variances;
  request.weights = document.weights;
  request.budget = document.budget;
  request.init = document.init;
  request.reference = document.reference;
  request.space = document.space;
  request.max_merges = document.max_merges;
  request.max_rounds = document.max_rounds;
  return request;
}

}  // namespace mergeplan
