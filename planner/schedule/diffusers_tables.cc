// betas and alphas_cumprod of a config, and the samplers that index them by timesteps.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"
#include "planner/schedule/beta_tables.h"
#include "planner/schedule/diffusers_internal.h"
#include "planner/schedule/spacing.h"

namespace mergeplan {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

bool IsCogVideo(const SamplerOptions& o) { return o.sampler->Takes("snr_shift_scale"); }

// alphas_cumprod moved to another signal-to-noise ratio, then rescaled itself (not its betas).
void ShiftSnr(const SamplerOptions& o, TablePrecision precision, std::vector<double>& table) {
  const bool single = precision == TablePrecision::kSingle;
  for (double& a : table) {
    const double scale = o.snr_shift_scale;
    double below = single ? Single(Single(1 - scale) * a) : (1 - scale) * a;
    below = single ? Single(Single(scale) + below) : scale + below;
    a = single ? Single(a / below) : a / below;
  }
  if (o.rescale_betas_zero_snr) table = RescaleToZeroTerminalSnr(table, precision);
}

// Numbers of steps that set_timesteps refuses.
absl::Status CheckSteps(const SamplerOptions& o, int steps) {
  const SamplerKind kind = o.sampler->kind;
  const bool bounded = kind == SamplerKind::kDdim || kind == SamplerKind::kDdpm ||
                       kind == SamplerKind::kLcm || kind == SamplerKind::kTcd;
  if (bounded && steps > o.num_train_timesteps) {
    return absl::InvalidArgumentError(
        absl::StrFormat("teacher steps are %d, expected at most num_train_timesteps = %d", steps,
                        o.num_train_timesteps));
  }
  if (kind == SamplerKind::kLcm || kind == SamplerKind::kTcd) {
    if (o.original_inference_steps > o.num_train_timesteps) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "\"original_inference_steps\" is %d, expected at most num_train_timesteps = %d",
          o.original_inference_steps, o.num_train_timesteps));
    }
    if (steps > o.original_inference_steps) {
      return absl::InvalidArgumentError(
          absl::StrFormat("teacher steps are %d, expected at most original_inference_steps = %d "
                          "(original_inference_steps=… after the path raises it)",
                          steps, o.original_inference_steps));
    }
  }
  if (kind == SamplerKind::kUnClip && steps < 2) {
    return absl::InvalidArgumentError("teacher steps are 1, expected at least 2 (UnCLIPScheduler)");
  }
  if (kind == SamplerKind::kPndm && !o.skip_prk_steps && steps < 4) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "teacher steps are %d, expected at least 4 where skip_prk_steps is false", steps));
  }
  return absl::OkStatus();
}

std::vector<double> Spaced(const SamplerOptions& o, int steps) {
  const int train = o.num_train_timesteps;
  if (o.timestep_spacing == "linspace") return LinspaceTimesteps(train, steps, true);
  if (o.timestep_spacing == "trailing") return TrailingTimesteps(train, steps);
  return LeadingTimesteps(train, steps, o.steps_offset);
}

// Trailing spacings may end below 0 by rounding, where diffusers would read the table from behind.
void DropNegative(int steps, std::vector<double>& timesteps, DiffusersTables& t) {
  if (timesteps.empty() || timesteps.back() >= 0) return;
  while (!timesteps.empty() && timesteps.back() < 0) timesteps.pop_back();
  t.notes.push_back(absl::StrFormat(
      "the trailing spacing of %d steps ends at timestep -1 in diffusers, which is left out",
      steps));
}

// PNDM: the timesteps with the repetitions of its multistep method, after Runge-Kutta steps through
// the midpoints of the noisiest intervals unless they are skipped. `grid` is rising.
std::vector<double> PndmTimesteps(const SamplerOptions& o, int steps,
                                  const std::vector<double>& grid) {
  const size_t n = grid.size();
  std::vector<double> t;
  if (o.skip_prk_steps) {
    t.assign(grid.begin(), grid.end() - 1);
    if (n >= 2) t.push_back(grid[n - 2]);
    t.push_back(grid[n - 1]);
    std::reverse(t.begin(), t.end());
    return t;
  }
  const double half = o.num_train_timesteps / steps / 2;
  for (size_t i = n - 4; i < n; ++i) {
    for (const double point : {grid[i], grid[i] + half}) {
      t.push_back(point);
      t.push_back(point);
    }
  }
  // The last midpoint lies beyond the noisiest timestep; the ends are not repeated.
  t.erase(t.end() - 2, t.end());
  t.erase(t.begin());
  t.pop_back();
  std::reverse(t.begin(), t.end());
  for (size_t i = n - 3; i-- > 0;) t.push_back(grid[i]);
  return t;
}

// RePaint goes back by ten steps nine times on its way; here each timestep counts once.
std::vector<double> RePaintTimesteps(const SamplerOptions& o, int steps) {
  const int count = std::min(steps, o.num_train_timesteps);
  return LeadingTimesteps(o.num_train_timesteps, count, 0);
}

// LCM and TCD: `steps` of the original_inference_steps trailing timesteps.
std::vector<double> SubsetTimesteps(const SamplerOptions& o, int steps) {
  const int count = o.original_inference_steps;
  const int stride = o.num_train_timesteps / count;
  std::vector<double> t;
  for (const double x : DoubleLinspace(0, count, steps, /*endpoint=*/false)) {
    t.push_back(static_cast<double>(count - static_cast<int>(x)) * stride - 1);
  }
  return t;
}

std::vector<double> UnClipTimesteps(int train, int steps) {
  const double stride = static_cast<double>(train - 1) / (steps - 1);
  std::vector<double> t(steps);
  for (int i = 0; i < steps; ++i) t[i] = std::nearbyint((steps - 1 - i) * stride);
  return t;
}

// alphas_cumprod of the level on which the last step lands.
double LandingAlpha(const SamplerOptions& o, int steps, const DiffusersTables& t) {
  switch (o.sampler->kind) {
    case SamplerKind::kTcd:
      return t.alphas_cumprod[0];
    case SamplerKind::kDdim:
    case SamplerKind::kPndm: {
      const double last = *std::min_element(t.timesteps.begin(), t.timesteps.end());
      const double next = last - o.num_train_timesteps / steps;
      return next >= 0 ? t.alphas_cumprod[static_cast<size_t>(next)] : *t.final_alpha_cumprod;
    }
    default:
      return 1;
  }
}

// sigma(s) = sin^2(pi s / 2), or given as trained_betas, and alpha = sqrt(1 - sigma^2).
absl::Status FillIpndm(const SamplerOptions& o, int steps, DiffusersTables& t) {
  if (o.trained_betas) {
    for (const double beta : *o.trained_betas) t.betas.push_back(Single(beta));
  } else {
    std::vector<double> s = SingleLinspace(1, 0, steps + 1);
    s.back() = 0;
    for (const double x : s) {
      const double sine = Single(std::sin(Single(Single(x * Single(std::numbers::pi)) / 2)));
      t.betas.push_back(Single(sine * sine));
    }
  }
  if (t.betas.size() != static_cast<size_t>(steps) + 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("\"trained_betas\" holds %d numbers, expected teacher steps + 1 = %d",
                        t.betas.size(), steps + 1));
  }
  for (size_t i = 0; i < t.betas.size(); ++i) {
    const double sigma = t.betas[i];
    const double alpha = Single(std::sqrt(Single(1 - Single(sigma * sigma))));
    const bool last = i + 1 == t.betas.size();
    if (!last) t.timesteps.push_back(Single(std::atan2(sigma, alpha) / std::numbers::pi * 2));
    t.levels.push_back({alpha, sigma, last ? kNone : t.timesteps.back()});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FillTables(const SamplerOptions& o, DiffusersTables& t) {
  if (!o.sampler->Takes("beta_schedule")) return absl::OkStatus();
  const bool wide = IsCogVideo(o) && !o.trained_betas && o.beta_schedule == "scaled_linear";
  const TablePrecision precision = wide ? TablePrecision::kDouble : TablePrecision::kSingle;
  if (o.trained_betas) {
    for (const double beta : *o.trained_betas) t.betas.push_back(Single(beta));
  } else {
    MP_ASSIGN_OR_RETURN(t.betas, MakeBetas(o.beta_schedule, o.beta_start, o.beta_end,
                                           o.num_train_timesteps, precision));
  }
  if (o.rescale_betas_zero_snr && t.betas.size() < 2) {
    return absl::InvalidArgumentError(
        "\"rescale_betas_zero_snr\" is true for a table of one timestep, expected two or more");
  }
  if (o.rescale_betas_zero_snr && !IsCogVideo(o)) t.betas = RescaleBetasToZeroTerminalSnr(t.betas);
  t.alphas_cumprod = CumulativeAlphas(t.betas, precision);
  if (IsCogVideo(o)) ShiftSnr(o, precision, t.alphas_cumprod);
  // The samplers that divide by alphas_cumprod put a small number in the place of its zero.
  const bool divides =
      o.sampler->kind == SamplerKind::kEuler || o.sampler->kind == SamplerKind::kMultistep;
  if (o.rescale_betas_zero_snr && divides) t.alphas_cumprod.back() = std::ldexp(1.0, -24);
  for (size_t i = 0; i < t.alphas_cumprod.size(); ++i) {
    if (!(t.alphas_cumprod[i] >= 0) || t.alphas_cumprod[i] > 1) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "the betas give alphas_cumprod %g at timestep %d, expected a number from 0 to 1",
          t.alphas_cumprod[i], i));
    }
  }
  if (o.sampler->Takes("set_alpha_to_one")) {
    t.final_alpha_cumprod = o.set_alpha_to_one ? 1.0 : t.alphas_cumprod[0];
  } else if (o.sampler->kind == SamplerKind::kRePaint) {
    t.final_alpha_cumprod = 1.0;
  }
  return absl::OkStatus();
}

absl::Status FillTableSampler(const SamplerOptions& o, int steps, DiffusersTables& t) {
  t.level_kind = LevelKind::kTable;
  if (o.sampler->kind == SamplerKind::kIpndm) return FillIpndm(o, steps, t);
  MP_RETURN_IF_ERROR(CheckSteps(o, steps));
  switch (o.sampler->kind) {
    case SamplerKind::kPndm: {
      std::vector<double> grid = Spaced(o, steps);
      DropNegative(steps, grid, t);
      if (!o.skip_prk_steps && grid.size() < 4) {
        return absl::InvalidArgumentError(
            "fewer than 4 timesteps, expected 4 or more where skip_prk_steps is false");
      }
      std::reverse(grid.begin(), grid.end());
      t.timesteps = PndmTimesteps(o, steps, grid);
      break;
    }
    case SamplerKind::kLcm:
    case SamplerKind::kTcd:
      t.timesteps = SubsetTimesteps(o, steps);
      break;
    case SamplerKind::kUnClip:
      t.timesteps = UnClipTimesteps(o.num_train_timesteps, steps);
      break;
    case SamplerKind::kRePaint:
      t.timesteps = RePaintTimesteps(o, steps);
      break;
    default:
      t.timesteps = Spaced(o, steps);
  }
  DropNegative(steps, t.timesteps, t);
  for (const double x : t.timesteps) {
    if (x >= static_cast<double>(t.alphas_cumprod.size())) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%d steps with timestep_spacing \"%s\" and steps_offset %d ask for timestep %d, expected "
          "at most %d; use fewer steps or another offset",
          steps, o.timestep_spacing, o.steps_offset, static_cast<int>(x),
          t.alphas_cumprod.size() - 1));
    }
    const double a = t.alphas_cumprod[static_cast<size_t>(x)];
    t.levels.push_back({std::sqrt(a), std::sqrt(1 - a), x});
  }
  const double a = LandingAlpha(o, steps, t);
  t.levels.push_back({std::sqrt(a), std::sqrt(1 - a), kNone});
  if (o.sampler->name == "DDIMInverseScheduler")
    std::reverse(t.timesteps.begin(), t.timesteps.end());
  return absl::OkStatus();
}

}  // namespace mergeplan
