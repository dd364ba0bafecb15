// DPM-Solver (multistep, single-step, inverse), DEIS, UniPC and SA-Solver: sigmas are the ratios
// sigma/alpha of a table, or flow matching's with use_flow_sigmas.

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"
#include "planner/schedule/beta_tables.h"
#include "planner/schedule/diffusers_internal.h"
#include "planner/schedule/sigmas.h"
#include "planner/schedule/spacing.h"

namespace mergeplan {
namespace {

bool IsUniPc(const SamplerOptions& o) { return o.sampler->name == "UniPCMultistepScheduler"; }
// The classes that end on a level of their own choice, not by an option.
bool RepeatsLast(const SamplerOptions& o) { return !o.sampler->Takes("final_sigmas_type"); }

// How many of the noisiest timesteps lambda_min_clipped cuts off: lambda = log(alpha/sigma).
int ClippedTimesteps(const SamplerOptions& o, const std::vector<double>& alphas_cumprod) {
  if (!o.clips_lambda) return 0;
  int clipped = 0;
  for (size_t i = alphas_cumprod.size(); i-- > 0; ++clipped) {
    const double a = alphas_cumprod[i];
    const double lambda = Single(Single(std::log(Single(std::sqrt(a)))) -
                                 Single(std::log(Single(std::sqrt(Single(1 - a))))));
    if (lambda >= Single(o.lambda_min_clipped)) break;
  }
  return clipped;
}

// The inverse sampler leaves out the noisiest point, not the cleanest; rising.
std::vector<double> InverseSpaced(const SamplerOptions& o, int last, int steps) {
  std::vector<double> t;
  if (o.timestep_spacing == "trailing") {
    t = MultistepTrailingTimesteps(o.num_train_timesteps, last, steps);
  } else if (o.timestep_spacing == "leading") {
    t = LeadingTimesteps(last, steps + 1, o.steps_offset);
  } else {
    t = LinspaceTimesteps(last, steps + 1, /*rounded=*/true);
  }
  std::reverse(t.begin(), t.end());
  if (o.timestep_spacing != "trailing") t.pop_back();
  return t;
}

std::vector<double> Spaced(const SamplerOptions& o, int last, int steps) {
  if (o.sampler->kind == SamplerKind::kInverse) return InverseSpaced(o, last, steps);
  const bool single_step = !o.sampler->Takes("timestep_spacing");
  if (single_step || o.timestep_spacing == "linspace") {
    return MultistepLinspaceTimesteps(last, steps);
  }
  if (o.timestep_spacing == "leading")
    return MultistepLeadingTimesteps(last, steps, o.steps_offset);
  return MultistepTrailingTimesteps(o.num_train_timesteps, last, steps);
}

// The sigmas of flow matching, without the end.
absl::StatusOr<std::vector<double>> FlowSigmas(const SamplerOptions& o, int steps) {
  const int train = o.num_train_timesteps;
  if (!IsUniPc(o)) {
    const double shift = o.use_dynamic_shifting && o.mu ? std::exp(*o.mu) : o.flow_shift;
    std::vector<double> sigmas = DoubleLinspace(1, 1.0 / train, steps + 1);
    for (double& s : sigmas) s = Shifted(shift, 1 - s);
    std::reverse(sigmas.begin(), sigmas.end());
    sigmas.pop_back();
    return sigmas;
  }
  std::vector<double> sigmas = DoubleLinspace(1, 1.0 / train, steps + 1);
  sigmas.pop_back();
  for (double& s : sigmas) {
    s = o.use_dynamic_shifting ? TimeShift(o, *o.mu, s) : Shifted(o.flow_shift, s);
  }
  if (o.shift_terminal.value_or(0) != 0) {
    MP_RETURN_IF_ERROR(StretchToTerminal(*o.shift_terminal, sigmas));
  }
  // UniPC keeps away from sigma = 1, where its logarithms are infinite.
  if (std::abs(sigmas[0] - 1) < 1e-6) sigmas[0] -= 1e-6;
  return sigmas;
}

bool ReplacesTimesteps(const SamplerOptions& o) {
  return o.use_karras_sigmas || o.use_exponential_sigmas || o.use_beta_sigmas || o.use_lu_lambdas ||
         o.use_flow_sigmas;
}

// The sigmas of the options that replace the timesteps.
absl::StatusOr<std::vector<double>> OwnSigmas(const SamplerOptions& o,
                                              const std::vector<double>& table,
                                              const std::vector<double>& log_sigmas, int steps) {
  if (o.use_lu_lambdas) {  // a line in log sigma (Lu et al. 2022, rho = 1)
    std::vector<double> sigmas = DoubleLinspace(0, 1, steps);
    for (double& x : sigmas) {
      x = std::exp(log_sigmas.back() + x * (log_sigmas.front() - log_sigmas.back()));
    }
    return sigmas;
  }
  // The inverse sampler walks the same way up.
  const bool inverse = o.sampler->kind == SamplerKind::kInverse;
  auto converted = ConvertedSigmas(o, inverse ? table.front() : table.back(),
                                   inverse ? table.back() : table.front(), steps);
  if (!converted) return FlowSigmas(o, steps);
  if (o.use_flow_sigmas) {
    for (double& s : *converted) s = s / (s + 1);
  }
  return *std::move(converted);
}

// What the network is told at sigmas that replace the timesteps: whole numbers (of the inverse
// sampler only after repeats are dropped).
std::vector<double> TimestepsOf(const SamplerOptions& o, const std::vector<double>& sigmas,
                                const std::vector<double>& log_sigmas, bool flow) {
  const bool multistep = o.sampler->name == "DPMSolverMultistepScheduler";
  const bool rounds = (o.use_karras_sigmas || o.use_lu_lambdas) &&
                      !(multistep && o.beta_schedule == "squaredcos_cap_v2");
  const bool inverse = o.sampler->kind == SamplerKind::kInverse;
  std::vector<double> timesteps;
  for (const double s : sigmas) {
    const double x = flow ? s * o.num_train_timesteps : SigmaToTimestep(s, log_sigmas);
    timesteps.push_back(rounds && !flow ? std::nearbyint(x) : inverse ? x : std::trunc(x));
  }
  return timesteps;
}

absl::Status CheckFlow(const SamplerOptions& o) {
  const bool converts =
      o.use_karras_sigmas || o.use_exponential_sigmas || o.use_beta_sigmas || o.use_lu_lambdas;
  if (o.use_flow_sigmas && converts && !(IsUniPc(o) && o.use_karras_sigmas)) {
    return absl::InvalidArgumentError(
        absl::StrCat("use_flow_sigmas is true together with use_karras_sigmas, "
                     "use_exponential_sigmas, use_beta_sigmas or use_lu_lambdas, expected one of "
                     "them (",
                     std::string(o.sampler->name), ")"));
  }
  if (IsUniPc(o) && o.use_dynamic_shifting && !o.mu) {
    return absl::InvalidArgumentError(
        "use_dynamic_shifting is true, expected mu (write :mu=1.15 after the path)");
  }
  if (o.shift_terminal.value_or(0) != 0 && !o.use_flow_sigmas) {
    return absl::InvalidArgumentError(
        "shift_terminal is given, expected use_flow_sigmas true with it");
  }
  return absl::OkStatus();
}

// Where the last step lands.
double FinalSigma(const SamplerOptions& o, bool own, const std::vector<double>& table,
                  const std::vector<double>& sigmas) {
  if (RepeatsLast(o)) return own ? sigmas.back() : table[0];
  if (o.final_sigmas_type == "zero") return 0;
  return own && IsUniPc(o) ? sigmas.back() : table[0];
}

// DPM-Solver run backwards: the levels are the same, the noisiest one is where it ends.
void FillInverse(bool own, double sigma_end, int end_timestep, DiffusersTables& t) {
  t.sigmas.push_back(own ? t.sigmas.back() : sigma_end);
  for (double& s : t.sigmas) s = Single(s);
  std::vector<double> sigmas(t.sigmas.rbegin(), t.sigmas.rend());
  std::vector<double> timesteps(t.timesteps.rbegin(), t.timesteps.rend());
  for (double& x : timesteps) x = std::trunc(x);
  timesteps.insert(timesteps.begin(), own ? timesteps.front() : end_timestep);
  if (sigmas.front() < sigmas.back()) {  // given noisiest first although it walks the other way
    std::reverse(sigmas.begin(), sigmas.end());
    std::reverse(timesteps.begin(), timesteps.end());
  }
  AppendLevels(sigmas, timesteps, sigmas.size() - 1, t);
  std::vector<double> distinct;
  for (const double x : t.timesteps) {
    if (std::find(distinct.begin(), distinct.end(), x) == distinct.end()) distinct.push_back(x);
  }
  for (double& x : distinct) x = std::trunc(x);
  t.timesteps = std::move(distinct);
}

}  // namespace

absl::Status FillMultistepSampler(const SamplerOptions& o, int steps, DiffusersTables& t) {
  MP_RETURN_IF_ERROR(CheckFlow(o));
  t.level_kind = o.use_flow_sigmas ? LevelKind::kFlow : LevelKind::kPreserving;
  MP_ASSIGN_OR_RETURN(const std::vector<double> table, SigmasOfTable(t.alphas_cumprod));
  std::vector<double> log_sigmas;
  for (const double s : table) log_sigmas.push_back(Single(std::log(s)));

  const bool inverse = o.sampler->kind == SamplerKind::kInverse;
  const int last = o.num_train_timesteps - ClippedTimesteps(o, t.alphas_cumprod);
  if (last < 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("lambda_min_clipped %g cuts off every timestep, expected a smaller number",
                        o.lambda_min_clipped));
  }
  const bool replaced = ReplacesTimesteps(o);
  if (replaced) {
    MP_ASSIGN_OR_RETURN(t.sigmas, OwnSigmas(o, table, log_sigmas, steps));
    t.timesteps = TimestepsOf(o, t.sigmas, log_sigmas, o.use_flow_sigmas);
  } else {
    t.timesteps = Spaced(o, last, steps);
    for (const double x : t.timesteps) t.sigmas.push_back(Interpolate(table, x));
  }
  if (inverse) {
    FillInverse(replaced, table[static_cast<size_t>(last) - 1], last - 1, t);
    return absl::OkStatus();
  }
  t.sigmas.push_back(FinalSigma(o, replaced, table, t.sigmas));
  for (double& s : t.sigmas) s = Single(s);
  AppendLevels(t.sigmas, t.timesteps, t.timesteps.size(), t);
  return absl::OkStatus();
}

}  // namespace mergeplan
