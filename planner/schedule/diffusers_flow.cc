// Flow matching (z = (1 - sigma) x0 + sigma eps) and the samplers of EDM, which need no table.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"
#include "planner/schedule/beta_tables.h"
#include "planner/schedule/diffusers_internal.h"
#include "planner/schedule/sigmas.h"
#include "planner/schedule/spacing.h"

namespace mergeplan {
namespace {

// mu of dynamic shifting: given, or on the line through (base_image_seq_len, base_shift) and
// (max_image_seq_len, max_shift) at image_seq_len, or max_shift.
absl::StatusOr<double> DynamicMu(const SamplerOptions& o, DiffusersTables& t) {
  double mu = o.max_shift;
  if (o.mu) {
    mu = *o.mu;
  } else if (o.image_seq_len) {
    if (o.max_image_seq_len == o.base_image_seq_len) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "base_image_seq_len and max_image_seq_len are both %d, expected two numbers; give mu",
          o.max_image_seq_len));
    }
    const double slope =
        (o.max_shift - o.base_shift) / (o.max_image_seq_len - o.base_image_seq_len);
    mu = *o.image_seq_len * slope + (o.base_shift - slope * o.base_image_seq_len);
  } else {
    t.notes.push_back(absl::StrFormat(
        "use_dynamic_shifting: mu is max_shift = %g, right for images of max_image_seq_len = %d "
        "tokens; write :mu=… or :image_seq_len=… after the path for others",
        mu, o.max_image_seq_len));
  }
  if (o.time_shift_type == "linear" && !(mu > 0)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("mu is %g, expected a number above 0 with time_shift_type \"linear\"", mu));
  }
  return mu;
}

// The ends of the training range, as the constructor shifts and keeps them in float32.
double TrainingEnd(const SamplerOptions& o, int timestep) {
  const double s = Single(static_cast<double>(timestep) / o.num_train_timesteps);
  if (o.use_dynamic_shifting) return s;
  const double shift = Single(o.shift);
  const double below = Single(1 + Single(Single(o.shift - 1) * s));
  return Single(Single(shift * s) / below);
}

absl::StatusOr<std::vector<double>> FlowSigmas(const SamplerOptions& o, int steps,
                                               DiffusersTables& t) {
  const double train = o.num_train_timesteps;
  std::vector<double> sigmas = DoubleLinspace(TrainingEnd(o, o.num_train_timesteps) * train,
                                              TrainingEnd(o, 1) * train, steps);
  double mu = 0;
  if (o.use_dynamic_shifting) {
    MP_ASSIGN_OR_RETURN(mu, DynamicMu(o, t));
  }
  for (double& s : sigmas) {
    s /= train;
    s = o.use_dynamic_shifting ? TimeShift(o, mu, s) : Shifted(o.shift, s);
  }
  if (o.shift_terminal.value_or(0) != 0) {
    MP_RETURN_IF_ERROR(StretchToTerminal(*o.shift_terminal, sigmas));
  }
  if (auto converted = ConvertedSigmas(o, sigmas.front(), sigmas.back(), steps)) {
    sigmas = *std::move(converted);
  }
  for (double& s : sigmas) s = Single(s);
  return sigmas;
}

// A line (or, with rho, a line in sigma^(1/rho)) from sigma_max to sigma_min, in the precision of
// the class.
std::vector<double> EdmSigmas(const SamplerOptions& o, int steps) {
  const double top = *o.sigma_max;
  const double bottom = *o.sigma_min;
  if (o.sigma_schedule == "exponential") {
    std::vector<double> sigmas = SingleLinspace(std::log(bottom), std::log(top), steps);
    for (double& s : sigmas) s = Single(std::exp(s));
    std::reverse(sigmas.begin(), sigmas.end());
    return sigmas;
  }
  if (o.sampler->name == "EDMEulerScheduler") {
    std::vector<double> sigmas = KarrasSigmas(top, bottom, o.rho, steps);
    for (double& s : sigmas) s = Single(s);
    return sigmas;
  }
  const double first = std::pow(top, 1 / o.rho);
  const double last = std::pow(bottom, 1 / o.rho);
  std::vector<double> sigmas = SingleLinspace(0, 1, steps);
  for (double& x : sigmas) {
    x = Single(Single(first) + Single(x * Single(last - first)));
    x = Single(std::pow(x, Single(o.rho)));
  }
  return sigmas;
}

// Consistency models: multiples of the stride out of num_train_timesteps Karras sigmas, the
// noisiest of which is always in.
absl::Status FillConsistency(const SamplerOptions& o, int steps, DiffusersTables& t) {
  if (steps > o.num_train_timesteps) {
    return absl::InvalidArgumentError(
        absl::StrFormat("teacher steps are %d, expected at most num_train_timesteps = %d", steps,
                        o.num_train_timesteps));
  }
  const double top = std::pow(*o.sigma_max, 1 / o.rho);
  const double bottom = std::pow(*o.sigma_min, 1 / o.rho);
  const int stride = o.num_train_timesteps / steps;
  for (int i = 0; i < steps; ++i) {
    const double ramp = o.num_train_timesteps > 1
                            ? static_cast<double>(i) * stride / (o.num_train_timesteps - 1)
                            : 0.0;
    const double sigma = std::pow(top + ramp * (bottom - top), o.rho);
    t.timesteps.push_back(1000 * 0.25 * std::log(sigma + 1e-44));
    t.sigmas.push_back(Single(sigma));
  }
  t.sigmas.push_back(Single(*o.sigma_min));
  t.init_noise_sigma = *o.sigma_max;
  return absl::OkStatus();
}

}  // namespace

double TimeShift(const SamplerOptions& o, double mu, double s) {
  const double weight = o.time_shift_type == "linear" ? mu : std::exp(mu);
  return weight / (weight + (1 / s - 1));
}

double Shifted(double shift, double s) { return shift * s / (1 + (shift - 1) * s); }

absl::Status StretchToTerminal(double terminal, std::vector<double>& sigmas) {
  const double scale = (1 - sigmas.back()) / (1 - terminal);
  if (!(scale > 0) || !std::isfinite(scale)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "shift_terminal %g cannot be reached from a last sigma of %g, expected shift_terminal "
        "below 1 and two steps or more",
        terminal, sigmas.back()));
  }
  for (double& s : sigmas) s = 1 - (1 - s) / scale;
  return absl::OkStatus();
}

absl::Status FillFlowSampler(const SamplerOptions& o, int steps, DiffusersTables& t) {
  t.level_kind = LevelKind::kFlow;
  t.inverted_flow = o.invert_sigmas;
  MP_ASSIGN_OR_RETURN(std::vector<double> sigmas, FlowSigmas(o, steps, t));
  std::vector<double> timesteps;
  for (const double s : sigmas) {
    const double told = o.invert_sigmas ? Single(1 - s) : s;
    timesteps.push_back(Single(told * o.num_train_timesteps));
  }
  sigmas.push_back(0);
  AppendLevels(sigmas, timesteps, timesteps.size(), t);
  t.sigmas = sigmas;
  t.timesteps = timesteps;
  // Inverted samplers write the share of the data where the others write that of the noise.
  if (o.invert_sigmas) {
    for (double& s : t.sigmas) s = Single(1 - s);
  }
  if (o.sampler->kind == SamplerKind::kFlowHeun) {
    t.sigmas = {sigmas[0]};
    t.timesteps = {timesteps[0]};
    for (size_t i = 1; i < timesteps.size(); ++i) {
      t.sigmas.insert(t.sigmas.end(), 2, sigmas[i]);
      t.timesteps.insert(t.timesteps.end(), 2, timesteps[i]);
    }
    t.sigmas.push_back(0);
  }
  return absl::OkStatus();
}

absl::Status FillEdmSampler(const SamplerOptions& o, int steps, DiffusersTables& t) {
  t.level_kind = LevelKind::kEdm;
  t.sigma_data = o.sigma_data;
  if (o.sampler->kind == SamplerKind::kConsistency) {
    MP_RETURN_IF_ERROR(FillConsistency(o, steps, t));
  } else {
    t.sigmas = EdmSigmas(o, steps);
    const bool cosine = o.sampler->name == "CosineDPMSolverMultistepScheduler";
    for (const double s : t.sigmas) {
      t.timesteps.push_back(
          Single(cosine ? std::atan(s) / std::numbers::pi * 2 : 0.25 * std::log(s)));
    }
    const double least =
        o.sampler->name == "EDMEulerScheduler" ? t.sigmas.back() : Single(*o.sigma_min);
    t.sigmas.push_back(o.final_sigmas_type == "zero" ? 0.0 : least);
    t.init_noise_sigma = std::sqrt(*o.sigma_max * *o.sigma_max + 1);
  }
  AppendLevels(t.sigmas, t.timesteps, t.timesteps.size(), t);
  return absl::OkStatus();
}

}  // namespace mergeplan
