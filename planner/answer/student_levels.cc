#include "planner/answer/student_levels.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/schedule/beta_tables.h"
#include "planner/schedule/diffusers_options.h"
#include "planner/schedule/sampler_classes.h"
#include "planner/schedule/sigmas.h"

namespace mergeplan {
namespace {

// How far levels of a schedule that is read again may be from those of the plan: of the same
// arithmetic, so next to nothing.
constexpr double kSame = 1e-9;
// alpha + sigma = 1 of configs, which are in float32.
constexpr double kFlow = 1e-5;
// Of a sigma in a table, and of the timestep of a sigma: in float32 too.
constexpr double kSameSigma = 1e-4, kSameTimestep = 1e-2;

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

// What EulerDiscreteScheduler must be given for the plan's levels: timesteps, whose sigmas it takes
// from its table, or sigmas, of which it finds the timesteps.
absl::StatusOr<std::pair<std::string, std::vector<double>>> EulerLevels(const Plan& plan,
                                                                        const Schedule& schedule,
                                                                        const SamplerOptions& o) {
  std::vector<double> betas;
  if (o.trained_betas) {
    betas = *o.trained_betas;
  } else {
    MP_ASSIGN_OR_RETURN(betas, MakeBetas(o.beta_schedule, o.beta_start, o.beta_end,
                                         o.num_train_timesteps, TablePrecision::kSingle));
  }
  MP_ASSIGN_OR_RETURN(const std::vector<double> table,
                      SigmasOfTable(CumulativeAlphas(betas, TablePrecision::kSingle)));
  std::vector<double> logs;
  for (const double sigma : table) logs.push_back(std::log(sigma));
  MP_ASSIGN_OR_RETURN(std::vector<double> times, StudentTimesteps(plan, schedule));
  MP_ASSIGN_OR_RETURN(std::vector<double> sigmas, StudentSigmas(plan, schedule));
  std::string wrong;
  bool found = true;
  for (size_t k = 0; k < times.size(); ++k) {
    const double own = Interpolate(table, times[k]);
    if (wrong.empty() && std::abs(own - sigmas[k]) > kSameSigma * sigmas[k]) {
      wrong = absl::StrCat("at timestep ", times[k], " the plan has sigma ", sigmas[k],
                           " and its table ", own);
    }
    found = found && std::abs(SigmaToTimestep(sigmas[k], logs) - times[k]) <= kSameTimestep;
  }
  if (wrong.empty()) return std::pair(std::string("timesteps"), std::move(times));
  sigmas.back() = 0;
  if (found) return std::pair(std::string("sigmas"), std::move(sigmas));
  return NotStock(absl::StrCat(wrong, ", since ", std::string(o.sampler->name),
                               " rounds its timesteps; use mergeplan.diffusers.MergeScheduler, or "
                               "--format sigmas"));
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
  if (!schedule.variance_preserving() || o.use_flow_sigmas || !o.sampler->Takes("beta_schedule")) {
    return NotStock(absl::StrCat(std::string(o.sampler->name),
                                 " has no table of betas; --format sigmas may do"));
  }
  if (o.rescale_betas_zero_snr) {
    return NotStock(
        "the config rescales its betas to zero terminal SNR, and EulerDiscreteScheduler puts a "
        "small number in the place of zero; use mergeplan.diffusers.MergeScheduler");
  }
  if (o.sampler->Takes("snr_shift_scale") && o.snr_shift_scale != 1) {
    return NotStock(
        absl::StrCat("snr_shift_scale ", o.snr_shift_scale, " of ", std::string(o.sampler->name),
                     " moves its table, which EulerDiscreteScheduler does not know; use "
                     "mergeplan.diffusers.MergeScheduler"));
  }
  if (!o.trained_betas && !HasWord("linear scaled_linear squaredcos_cap_v2", o.beta_schedule)) {
    return NotStock(absl::StrCat("beta_schedule \"", o.beta_schedule,
                                 "\" is none of EulerDiscreteScheduler's (linear, scaled_linear, "
                                 "squaredcos_cap_v2); --format sigmas or timesteps may do"));
  }
  const Native landing = NativeLevel(schedule, 0);
  if (landing.sigma > 1e-9) {
    return NotStock(absl::StrCat("the plan's last step lands at alpha ", landing.alpha, ", sigma ",
                                 landing.sigma,
                                 " (set_alpha_to_one is off), that of EulerDiscreteScheduler on "
                                 "clean data; --format sigmas has the level"));
  }
  MP_ASSIGN_OR_RETURN(const auto levels, EulerLevels(plan, schedule, o));
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
  out[levels.first] = levels.second;
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
    bool inverted = false;
    if (const absl::StatusOr<SamplerOptions> o = LoadSamplerOptions(spec); o.ok()) {
      train = o->num_train_timesteps;
      inverted = o->invert_sigmas;
    }
    // The sigmas are the shifted ones: diffusers would shift them once more.
    out["scheduler"] = {{"_class_name", "FlowMatchEulerDiscreteScheduler"},
                        {"num_train_timesteps", train},
                        {"shift", 1.0},
                        {"use_dynamic_shifting", false}};
    if (inverted) out["scheduler"]["invert_sigmas"] = true;
    out["sigmas"] = sigmas;
  } else {
    MP_ASSIGN_OR_RETURN(out, OnTable(plan, schedule, spec));
  }
  out["num_inference_steps"] = plan.student_steps();
  return out.dump(2) + "\n";
}

}  // namespace mergeplan
