#include "planner/answer/student_levels.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/schedule/diffusers_options.h"

namespace mergeplan {
namespace {

// How far levels of a schedule that is read again may be from those of the plan: of the same
// arithmetic, so next to nothing.
constexpr double kSame = 1e-9;
// alpha + sigma = 1 of configs, which are in float32.
constexpr double kFlow = 1e-5;

bool SameLevels(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) {
           return std::abs(x - y) <= kSame;
         });
}

struct Native {
  double alpha, sigma;
};

Native NativeLevel(const Schedule& s, int t) {
  const auto k = static_cast<size_t>(t);
  return {s.level_scale[k] * s.alpha[k] / s.data_scale, s.level_scale[k] * s.sigma[k]};
}

absl::Status NotStock(const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("no scheduler of diffusers can take these steps: ", why));
}

// A table of betas that EulerDiscreteScheduler knows, with the student's timesteps in it.
absl::StatusOr<nlohmann::ordered_json> OnTable(const Plan& plan, const Schedule& schedule,
                                               const std::string& spec) {
  absl::StatusOr<SamplerOptions> read = LoadSamplerOptions(spec);
  if (!read.ok()) {
    return NotStock(absl::StrCat("the plan was made for the schedule \"", spec,
                                 "\", expected a scheduler_config.json with a table of betas, or "
                                 "flow matching; --format sigmas or timesteps may do"));
  }
  const SamplerOptions& o = *read;
  if (!schedule.variance_preserving() || o.use_flow_sigmas ||
      o.sampler->kind == SamplerKind::kEdm || o.sampler->kind == SamplerKind::kConsistency) {
    return NotStock(absl::StrCat(std::string(o.sampler->name),
                                 " has no table of betas; --format sigmas may do"));
  }
  if (o.rescale_betas_zero_snr) {
    return NotStock(
        "the config rescales its betas to zero terminal SNR, and EulerDiscreteScheduler puts a "
        "small number in the place of zero; use mergeplan.diffusers.MergeScheduler");
  }
  const Native landing = NativeLevel(schedule, 0);
  if (landing.sigma > 1e-9) {
    return NotStock(absl::StrCat("the plan's last step lands at alpha ", landing.alpha, ", sigma ",
                                 landing.sigma,
                                 " (set_alpha_to_one is off), that of EulerDiscreteScheduler on "
                                 "clean data; --format sigmas has the level"));
  }
  MP_ASSIGN_OR_RETURN(const std::vector<double> times, StudentTimesteps(plan, schedule));
  nlohmann::ordered_json config = {{"_class_name", "EulerDiscreteScheduler"},
                                   {"num_train_timesteps", o.num_train_timesteps},
                                   {"beta_start", o.beta_start},
                                   {"beta_end", o.beta_end},
                                   {"beta_schedule", o.beta_schedule}};
  if (o.trained_betas) config["trained_betas"] = *o.trained_betas;
  config["prediction_type"] = o.prediction_type;
  // Noise of unit variance is scaled by sqrt(sigma^2 + 1): where the student starts.
  config["timestep_spacing"] = "leading";
  config["final_sigmas_type"] = "zero";
  config["interpolation_type"] = "linear";
  config["use_karras_sigmas"] = false;
  nlohmann::ordered_json out;
  out["scheduler"] = std::move(config);
  out["timesteps"] = times;
  return out;
}

}  // namespace

std::vector<int> StudentLevels(const Plan& plan) {
  std::vector<int> out{plan.teacher_steps()};
  for (size_t k = plan.blocks().size(); k-- > 0;) {
    out.push_back(plan.range(plan.blocks()[k]).first - 1);
  }
  return out;
}

absl::StatusOr<Schedule> ScheduleBehind(const PlanDocument& document, const std::string& spec) {
  if (document.tables) {
    return absl::FailedPreconditionError(
        "a plan of bare tables has no schedule, so its levels have no timestep and no sigma");
  }
  const std::string& from = spec.empty() ? document.schedule_spec : spec;
  absl::StatusOr<Schedule> loaded = LoadSchedule(from, document.plan.teacher_steps());
  if (!loaded.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the plan's schedule \"", from,
                     "\" cannot be read again, which timesteps and "
                     "sigmas need (",
                     std::string(loaded.status().message()), "); say where it is with --schedule"));
  }
  if (!SameLevels(loaded->alpha, document.alpha) || !SameLevels(loaded->sigma, document.sigma)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the schedule \"", from,
                     "\" has other noise levels than the plan; expected the one that "
                     "the plan was made for (",
                     document.schedule_spec, ")"));
  }
  return loaded;
}

absl::StatusOr<std::vector<double>> StudentTimesteps(const Plan& plan, const Schedule& schedule) {
  if (schedule.timesteps.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the schedule \"", schedule.spec,
                     "\" has no timesteps; expected one that was read from a scheduler_config.json "
                     "(--format sigmas needs none)"));
  }
  std::vector<int> levels = StudentLevels(plan);
  levels.pop_back();
  std::vector<double> out;
  for (const int t : levels) out.push_back(schedule.timesteps[static_cast<size_t>(t)]);
  return out;
}

bool IsFlow(const Schedule& schedule) {
  for (int t = 0; t <= schedule.steps(); ++t) {
    const Native level = NativeLevel(schedule, t);
    if (!(std::abs(level.alpha + level.sigma - 1) <= kFlow)) return false;
  }
  return true;
}

absl::StatusOr<std::vector<double>> StudentSigmas(const Plan& plan, const Schedule& schedule) {
  const bool flow = IsFlow(schedule);
  std::vector<double> out;
  for (const int t : StudentLevels(plan)) {
    const Native level = NativeLevel(schedule, t);
    const double sigma = flow ? level.sigma : level.sigma / level.alpha;
    if (!std::isfinite(sigma)) {
      return absl::InvalidArgumentError(
          absl::StrCat("level ", t, " of the schedule \"", schedule.spec,
                       "\" is pure noise (alpha 0), so its sigma is infinite; expected a schedule "
                       "that does not end at alpha 0, or --format timesteps"));
    }
    out.push_back(sigma);
  }
  return out;
}

absl::StatusOr<std::string> StockScheduler(const Plan& plan, const Schedule& schedule,
                                           const std::string& spec) {
  nlohmann::ordered_json out;
  if (IsFlow(schedule)) {
    MP_ASSIGN_OR_RETURN(std::vector<double> sigmas, StudentSigmas(plan, schedule));
    if (sigmas.back() > 1e-9) {
      return NotStock(absl::StrCat("the plan's last step lands at sigma ", sigmas.back(),
                                   ", that of FlowMatchEulerDiscreteScheduler at 0"));
    }
    sigmas.pop_back();  // set_timesteps adds the 0
    int train = 1000;
    if (const absl::StatusOr<SamplerOptions> o = LoadSamplerOptions(spec); o.ok()) {
      train = o->num_train_timesteps;
    }
    // The sigmas are the shifted ones: diffusers would shift them once more.
    out["scheduler"] = {{"_class_name", "FlowMatchEulerDiscreteScheduler"},
                        {"num_train_timesteps", train},
                        {"shift", 1.0},
                        {"use_dynamic_shifting", false}};
    out["sigmas"] = sigmas;
  } else {
    MP_ASSIGN_OR_RETURN(out, OnTable(plan, schedule, spec));
  }
  out["num_inference_steps"] = plan.student_steps();
  return out.dump(2) + "\n";
}

}  // namespace mergeplan
