// The samplers whose noise levels are sigmas interpolated in a table (z = x0 + sigma eps).

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/base/status_macros.h"
#include "planner/schedule/beta_tables.h"
#include "planner/schedule/diffusers_internal.h"
#include "planner/schedule/sigmas.h"
#include "planner/schedule/spacing.h"

namespace mergeplan {
namespace {

std::vector<double> Spaced(const SamplerOptions& o, int steps) {
  const int train = o.num_train_timesteps;
  if (o.timestep_spacing == "leading") return LeadingTimesteps(train, steps, o.steps_offset);
  if (o.timestep_spacing == "trailing") return TrailingTimesteps(train, steps);
  std::vector<double> t = LinspaceTimesteps(train, steps, /*rounded=*/false);
  if (o.sampler->kind == SamplerKind::kDpmSde) {
    t = DoubleLinspace(0, train - 1, steps);
    std::reverse(t.begin(), t.end());
  }
  return t;
}

// What KDPM2 calls the network with between level i and i + 1 (sigma in float32).
double Midpoint(const SamplerOptions& o, double sigma, double next) {
  if (o.sampler->name == "KDPM2AncestralDiscreteScheduler") {
    const double up2 = next * next * (sigma * sigma - next * next) / (sigma * sigma);
    next = std::sqrt(std::max(next * next - up2, 0.0));
  }
  return std::sqrt(sigma) * std::sqrt(next);
}

// a, b, b, c, c, … (`last_once`: but the last one once).
std::vector<double> Doubled(const std::vector<double>& x, bool last_once) {
  std::vector<double> doubled;
  for (size_t i = 0; i < x.size(); ++i) {
    doubled.push_back(x[i]);
    if (i > 0 && !(last_once && i + 1 == x.size())) doubled.push_back(x[i]);
  }
  return doubled;
}

void DoubleUp(const SamplerOptions& o, const std::vector<double>& log_sigmas, DiffusersTables& t) {
  const std::vector<double> sigmas = t.sigmas;
  t.timesteps = Doubled(t.timesteps, false);
  const bool kdpm2 = o.sampler->kind == SamplerKind::kKdpm2;
  t.sigmas = Doubled(sigmas, /*last_once=*/!kdpm2);
  if (kdpm2) t.sigmas.push_back(sigmas.back());
  const size_t steps = sigmas.size() - 1;
  if (o.sampler->kind == SamplerKind::kHeun) return;
  for (size_t i = 0; i + 1 < steps; ++i) {
    const double middle = kdpm2 ? Midpoint(o, sigmas[i], sigmas[i + 1])
                                : std::sqrt(sigmas[i]) * std::sqrt(sigmas[i + 1]);
    t.timesteps[2 * i + 1] = SigmaToTimestep(middle, log_sigmas);
  }
}

}  // namespace

std::optional<std::vector<double>> ConvertedSigmas(const SamplerOptions& o, double sigma_max,
                                                   double sigma_min, int steps) {
  const bool unbounded = o.use_karras_sigmas && (o.sampler->name == "LMSDiscreteScheduler" ||
                                                 o.sampler->name == "DPMSolverSDEScheduler");
  const double top = unbounded ? sigma_max : o.sigma_max.value_or(sigma_max);
  const double bottom = unbounded ? sigma_min : o.sigma_min.value_or(sigma_min);
  if (o.use_karras_sigmas) return KarrasSigmas(top, bottom, 7.0, steps);
  if (o.use_exponential_sigmas) return ExponentialSigmas(top, bottom, steps);
  if (o.use_beta_sigmas) return BetaSigmas(top, bottom, steps);
  return std::nullopt;
}

void AppendLevels(const std::vector<double>& sigmas, const std::vector<double>& timesteps,
                  size_t count, DiffusersTables& t) {
  for (size_t i = 0; i <= count; ++i) {
    DiffusersTables::Level level;
    level.alpha = t.level_kind == LevelKind::kFlow ? 1 - sigmas[i] : 1.0;
    level.sigma = sigmas[i];
    level.timestep = i < count ? timesteps[i] : std::numeric_limits<double>::quiet_NaN();
    t.levels.push_back(level);
  }
}

absl::Status FillSigmaSampler(const SamplerOptions& o, int steps, DiffusersTables& t) {
  t.level_kind = LevelKind::kExploding;
  MP_ASSIGN_OR_RETURN(const std::vector<double> table, SigmasOfTable(t.alphas_cumprod));
  std::vector<double> log_sigmas;
  for (const double s : table) log_sigmas.push_back(Single(std::log(s)));

  std::vector<double> timesteps = Spaced(o, steps);
  std::vector<double> sigmas;
  if (o.interpolation_type == "log_linear") {
    for (const double x : SingleLinspace(log_sigmas.back(), log_sigmas.front(), steps + 1)) {
      sigmas.push_back(Single(std::exp(x)));
    }
  } else {
    for (const double x : timesteps) sigmas.push_back(Interpolate(table, x));
  }
  if (auto converted = ConvertedSigmas(o, sigmas.front(), sigmas.back(), steps)) {
    sigmas = *std::move(converted);
    timesteps.clear();
    const bool rounds = o.sampler->kind == SamplerKind::kKdpm2 && o.use_karras_sigmas;
    for (const double s : sigmas) {
      const double x = SigmaToTimestep(s, log_sigmas);
      timesteps.push_back(rounds ? std::nearbyint(x) : x);
    }
  }
  sigmas.push_back(o.final_sigmas_type == "sigma_min" ? table[0] : 0.0);
  for (double& s : sigmas) s = Single(s);

  if (o.timestep_type == "continuous" && o.prediction_type == "v_prediction") {
    timesteps.clear();
    for (size_t i = 0; i + 1 < sigmas.size(); ++i) {
      timesteps.push_back(Single(0.25 * Single(std::log(sigmas[i]))));
    }
  }
  t.sigmas = sigmas;
  t.timesteps = timesteps;
  // With log_linear there is one sigma more than the steps reach.
  AppendLevels(sigmas, timesteps,
               static_cast<size_t>(std::min(sigmas.size() - 1, timesteps.size())), t);
  const double largest = *std::max_element(sigmas.begin(), sigmas.end());
  t.init_noise_sigma = o.timestep_spacing == "leading" ? std::sqrt(largest * largest + 1) : largest;
  if (o.sampler->kind != SamplerKind::kEuler) DoubleUp(o, log_sigmas, t);
  return absl::OkStatus();
}

}  // namespace mergeplan
