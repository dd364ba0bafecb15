#include "planner/schedule/diffusers_config.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"
#include "planner/schedule/diffusers_internal.h"
#include "planner/schedule/json_text.h"

namespace mergeplan {
namespace {

// Repeats are told apart from levels by the relative distance of alpha/sigma; float32 leaves a few
// 1e-6 where sigma_min comes once from the option and once from a power.
constexpr double kSameLevel = 1e-5;

absl::Status Fill(const SamplerOptions& o, int steps, DiffusersTables& t) {
  MP_RETURN_IF_ERROR(FillTables(o, t));
  switch (o.sampler->kind) {
    case SamplerKind::kDdim:
    case SamplerKind::kDdpm:
    case SamplerKind::kPndm:
    case SamplerKind::kLcm:
    case SamplerKind::kTcd:
    case SamplerKind::kUnClip:
    case SamplerKind::kRePaint:
    case SamplerKind::kIpndm:
      return FillTableSampler(o, steps, t);
    case SamplerKind::kEuler:
    case SamplerKind::kHeun:
    case SamplerKind::kKdpm2:
    case SamplerKind::kDpmSde:
      return FillSigmaSampler(o, steps, t);
    case SamplerKind::kMultistep:
    case SamplerKind::kInverse:
      return FillMultistepSampler(o, steps, t);
    case SamplerKind::kEdm:
    case SamplerKind::kConsistency:
      return FillEdmSampler(o, steps, t);
    case SamplerKind::kFlow:
    case SamplerKind::kFlowHeun:
      return FillFlowSampler(o, steps, t);
  }
  return absl::InternalError("a sampler without levels");
}

absl::Status AtFile(const absl::Status& status, const std::string& path) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", std::string(status.message())));
}

// The level in planning coordinates.
struct Turned {
  double alpha, sigma, scale;
};

Turned Turn(const DiffusersTables& t, const DiffusersTables::Level& level) {
  switch (t.level_kind) {
    case LevelKind::kTable:
      return {level.alpha, level.sigma, 1.0};
    case LevelKind::kPreserving: {
      const double norm = std::hypot(1.0, level.sigma);
      return {1 / norm, level.sigma / norm, 1.0};
    }
    case LevelKind::kExploding:
    case LevelKind::kFlow: {
      const double norm = std::hypot(level.alpha, level.sigma);
      return {level.alpha / norm, level.sigma / norm, norm};
    }
    case LevelKind::kEdm: {
      const double norm = std::hypot(t.sigma_data, level.sigma);
      return {t.sigma_data / norm, level.sigma / norm, norm};
    }
  }
  return {0, 0, 0};
}

bool SameLevel(const Turned& a, const Turned& b) {
  const double ab = a.alpha * b.sigma;
  const double ba = b.alpha * a.sigma;
  return std::abs(ab - ba) <= kSameLevel * std::max(ab, ba);
}

}  // namespace

absl::StatusOr<DiffusersTables> ComputeDiffusersTables(const SamplerOptions& options, int steps,
                                                       const std::string& path) {
  if (steps < 1 || steps > 100'000) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: teacher steps are %d, expected a number from 1 to 100000", path, steps));
  }
  DiffusersTables t;
  t.class_name = std::string(options.sampler->name);
  t.prediction_type = options.prediction_type;
  t.num_train_timesteps = options.num_train_timesteps;
  t.requested_steps = steps;
  if (absl::Status status = Fill(options, steps, t); !status.ok()) return AtFile(status, path);
  for (const DiffusersTables::Level& level : t.levels) {
    if (!std::isfinite(level.alpha) || !std::isfinite(level.sigma) || level.alpha < 0 ||
        level.sigma < 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: the options of %s give a level with alpha %g and sigma %g, expected finite numbers, "
          "not negative",
          path, t.class_name, level.alpha, level.sigma));
    }
  }
  return t;
}

absl::StatusOr<DiffusersTables> ReadDiffusersTables(std::string_view json, int steps,
                                                    const std::string& path,
                                                    const std::vector<SpecParameter>& parameters) {
  MP_ASSIGN_OR_RETURN(const nlohmann::json config, ParseJson(json, path));
  MP_ASSIGN_OR_RETURN(const SamplerOptions options, ReadSamplerOptions(config, path, parameters));
  return ComputeDiffusersTables(options, steps, path);
}

absl::StatusOr<Schedule> ScheduleOfTables(const DiffusersTables& tables, const std::string& path) {
  Schedule s;
  s.spec = path;
  s.name = tables.class_name;
  s.prediction_type = tables.prediction_type;
  s.data_scale = tables.level_kind == LevelKind::kEdm ? tables.sigma_data : 1.0;
  s.notes = tables.notes;
  if (tables.inverted_flow) {
    s.prediction_type.clear();
    s.notes.push_back(
        "invert_sigmas: the network says x0 - eps, a flow with its sign turned; give its negative "
        "and call that flow");
  }

  // From the clean end; of equal levels the cleaner one stays, with the timestep that it has.
  Turned previous{};
  for (size_t i = tables.levels.size(); i-- > 0;) {
    const Turned level = Turn(tables, tables.levels[i]);
    if (!s.alpha.empty() && SameLevel(previous, level)) continue;
    previous = level;
    s.alpha.push_back(level.alpha);
    s.sigma.push_back(level.sigma);
    s.level_scale.push_back(level.scale);
    s.timesteps.push_back(s.timesteps.empty() ? std::numeric_limits<double>::quiet_NaN()
                                              : tables.levels[i].timestep);
  }
  if (s.steps() < 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: set_timesteps(%d) of %s gives one noise level only, expected two or more; ask for "
        "another number of teacher steps",
        path, tables.requested_steps, s.name));
  }
  if (s.steps() != tables.requested_steps) {
    s.notes.push_back(absl::StrFormat(
        "set_timesteps(%d) of %s gives %d distinct noise levels before the last: T is %d, not %d",
        tables.requested_steps, s.name, s.steps(), s.steps(), tables.requested_steps));
  }
  if (s.alpha.back() == 0 && s.prediction_type == "epsilon") {
    s.notes.push_back(
        "alpha is 0 at the noisiest level, where a prediction of epsilon says nothing about x0");
  }
  if (absl::Status status = ValidateSchedule(s); !status.ok()) return AtFile(status, path);
  return s;
}

}  // namespace mergeplan
