#pragma once

// The parts of ComputeDiffusersTables, by family of classes. Each fills the fields of `t` from
// betas down to levels, and returns INVALID_ARGUMENT without the file's name, which the caller
// adds.

#include "absl/status/status.h"
#include "planner/schedule/diffusers_config.h"

namespace mergeplan {

// betas, alphas_cumprod and final_alpha_cumprod; nothing for classes without a table.
absl::Status FillTables(const SamplerOptions& o, DiffusersTables& t);

// DDIM, DDPM, PNDM, LCM, TCD, UnCLIP, RePaint, IPNDM.
absl::Status FillTableSampler(const SamplerOptions& o, int steps, DiffusersTables& t);
// LMS, Euler, Euler ancestral, Heun, KDPM2 and its ancestral, DPM-Solver SDE.
absl::Status FillSigmaSampler(const SamplerOptions& o, int steps, DiffusersTables& t);
// DPM-Solver multistep, single-step and inverse, DEIS, UniPC, SA-Solver.
absl::Status FillMultistepSampler(const SamplerOptions& o, int steps, DiffusersTables& t);
// EDM Euler, EDM DPM-Solver, cosine DPM-Solver, consistency models.
absl::Status FillEdmSampler(const SamplerOptions& o, int steps, DiffusersTables& t);
// Flow matching: Euler, Heun, LCM, LTX Euler ancestral.
absl::Status FillFlowSampler(const SamplerOptions& o, int steps, DiffusersTables& t);

// Karras, exponential or beta sigmas where the options ask for them, between sigma_min and
// sigma_max (where given, else the two bounds); nothing otherwise. Of LMS and DPM-Solver SDE the
// Karras sigmas do not look at sigma_min and sigma_max.
std::optional<std::vector<double>> ConvertedSigmas(const SamplerOptions& o, double sigma_max,
                                                   double sigma_min, int steps);

// s e^mu / (1 + s (e^mu - 1)) and its linear relative, for 0 < s <= 1.
double TimeShift(const SamplerOptions& o, double mu, double s);
// s shift / (1 + s (shift - 1)).
double Shifted(double shift, double s);
// Stretches so that the last sigma is 1 - (1 - shift_terminal).
absl::Status StretchToTerminal(double terminal, std::vector<double>& sigmas);

// Appends the levels of sigmas[0..count], the last being where the last step lands.
// `timestep[i]` belongs to sigmas[i], i < count.
void AppendLevels(const std::vector<double>& sigmas, const std::vector<double>& timesteps,
                  size_t count, DiffusersTables& t);

}  // namespace mergeplan
