// Which classes of diffusers are known, and which options each of them takes.

#include <algorithm>

#include "absl/strings/str_split.h"
#include "planner/schedule/diffusers_options.h"
#include "planner/schedule/sampler_classes.h"

namespace mergeplan {
namespace {

constexpr std::string_view kBetas =
    "num_train_timesteps beta_start beta_end beta_schedule trained_betas";
constexpr std::string_view kPrediction = "prediction_type";
constexpr std::string_view kSpacing = "timestep_spacing steps_offset";
constexpr std::string_view kZeroSnr = "rescale_betas_zero_snr";
constexpr std::string_view kFinalAlpha = "set_alpha_to_one";
// sigma_min and sigma_max bound these where a file holds them, though few classes declare them.
constexpr std::string_view kSigmas =
    "use_karras_sigmas use_exponential_sigmas use_beta_sigmas sigma_min sigma_max";
constexpr std::string_view kFinalSigma = "final_sigmas_type";
constexpr std::string_view kFlowSigmas = "use_flow_sigmas flow_shift";
constexpr std::string_view kDynamic = "use_dynamic_shifting time_shift_type mu";
constexpr std::string_view kClipped = "lambda_min_clipped";
constexpr std::string_view kEdm =
    "num_train_timesteps sigma_min sigma_max sigma_data sigma_schedule rho prediction_type "
    "final_sigmas_type";
constexpr std::string_view kFlow =
    "num_train_timesteps shift use_dynamic_shifting base_shift max_shift base_image_seq_len "
    "max_image_seq_len invert_sigmas shift_terminal time_shift_type mu image_seq_len";

constexpr std::string_view kThree = "linear scaled_linear squaredcos_cap_v2";

std::vector<SamplerClass> MakeClasses() {
  using K = SamplerKind;
  const std::vector<std::string_view> ddim = {kBetas, kPrediction, kSpacing, kZeroSnr, kFinalAlpha};
  const std::vector<std::string_view> cog = {kBetas,   kPrediction, kSpacing,
                                             kZeroSnr, kFinalAlpha, "snr_shift_scale"};
  const std::vector<std::string_view> ddpm = {kBetas, kPrediction, kSpacing, kZeroSnr};
  const std::vector<std::string_view> lcm = {kBetas, kPrediction, kZeroSnr, kFinalAlpha,
                                             "original_inference_steps"};
  const std::vector<std::string_view> second_order = {kBetas, kPrediction, kSpacing, kSigmas};
  return {
      {"DDIMScheduler", K::kDdim, ddim, kThree},
      {"DDIMParallelScheduler", K::kDdim, ddim, kThree},
      {"DDIMInverseScheduler",
       K::kDdim,
       {kBetas, kPrediction, kSpacing, kZeroSnr, kFinalAlpha, "set_alpha_to_zero"},
       kThree},
      {"CogVideoXDDIMScheduler", K::kDdim, cog, kThree},
      {"CogVideoXDPMScheduler", K::kDdim, cog, kThree},
      {"DDPMScheduler", K::kDdpm, ddpm, "linear scaled_linear squaredcos_cap_v2 laplace sigmoid"},
      {"DDPMParallelScheduler", K::kDdpm, ddpm,
       "linear scaled_linear squaredcos_cap_v2 laplace sigmoid"},
      {"PNDMScheduler",
       K::kPndm,
       {kBetas, kPrediction, kSpacing, kFinalAlpha, "skip_prk_steps"},
       kThree},
      {"LCMScheduler", K::kLcm, lcm, kThree},
      {"TCDScheduler", K::kTcd, lcm, kThree},
      {"UnCLIPScheduler",
       K::kUnClip,
       {"num_train_timesteps beta_schedule", kPrediction},
       "squaredcos_cap_v2"},
      {"RePaintScheduler", K::kRePaint, {kBetas}, "linear scaled_linear squaredcos_cap_v2 sigmoid"},
      {"IPNDMScheduler", K::kIpndm, {"num_train_timesteps trained_betas"}, ""},
      {"LMSDiscreteScheduler", K::kEuler, second_order, kThree},
      {"EulerDiscreteScheduler",
       K::kEuler,
       {kBetas, kPrediction, kSpacing, kSigmas, kZeroSnr, kFinalSigma,
        "interpolation_type timestep_type"},
       kThree},
      {"EulerAncestralDiscreteScheduler",
       K::kEuler,
       {kBetas, kPrediction, kSpacing, kZeroSnr},
       kThree},
      {"HeunDiscreteScheduler", K::kHeun, second_order,
       "linear scaled_linear squaredcos_cap_v2 exp"},
      {"KDPM2DiscreteScheduler", K::kKdpm2, second_order, kThree},
      {"KDPM2AncestralDiscreteScheduler", K::kKdpm2, second_order, kThree},
      {"DPMSolverSDEScheduler", K::kDpmSde, second_order, kThree},
      {"DPMSolverMultistepScheduler",
       K::kMultistep,
       {kBetas, kPrediction, kSpacing, kSigmas, kFlowSigmas, kFinalSigma, kClipped, kZeroSnr,
        kDynamic, "use_lu_lambdas"},
       kThree},
      {"DPMSolverSinglestepScheduler",
       K::kMultistep,
       {kBetas, kPrediction, kSigmas, kFlowSigmas, kFinalSigma, kClipped, kDynamic},
       kThree},
      {"DEISMultistepScheduler",
       K::kMultistep,
       {kBetas, kPrediction, kSpacing, kSigmas, kFlowSigmas, kDynamic},
       kThree},
      {"UniPCMultistepScheduler",
       K::kMultistep,
       {kBetas, kPrediction, kSpacing, kSigmas, kFlowSigmas, kFinalSigma, kZeroSnr, kDynamic,
        "shift_terminal"},
       kThree},
      {"SASolverScheduler",
       K::kMultistep,
       {kBetas, kPrediction, kSpacing, kSigmas, kFlowSigmas, kClipped},
       kThree},
      {"DPMSolverMultistepInverseScheduler",
       K::kInverse,
       {kBetas, kPrediction, kSpacing, kSigmas, kFlowSigmas, kClipped},
       kThree},
      {"EDMEulerScheduler", K::kEdm, {kEdm}, ""},
      {"EDMDPMSolverMultistepScheduler", K::kEdm, {kEdm}, ""},
      {"CosineDPMSolverMultistepScheduler", K::kEdm, {kEdm}, ""},
      {"CMStochasticIterativeScheduler",
       K::kConsistency,
       {"num_train_timesteps sigma_min sigma_max sigma_data rho"},
       ""},
      {"FlowMatchEulerDiscreteScheduler", K::kFlow, {kFlow, kSigmas}, ""},
      {"FlowMatchLCMScheduler", K::kFlow, {kFlow, kSigmas}, ""},
      {"LTXEulerAncestralRFScheduler", K::kFlow, {kFlow, kSigmas}, ""},
      {"FlowMatchHeunDiscreteScheduler", K::kFlowHeun, {"num_train_timesteps shift"}, ""},
  };
}

// Options of some class of diffusers that move no noise level.
constexpr std::string_view kInert =
    "clip_sample clip_sample_range thresholding dynamic_thresholding_ratio sample_max_value "
    "variance_type solver_order solver_type algorithm_type lower_order_final euler_at_final "
    "predict_x0 disable_corrector solver_p predictor_order corrector_order tau_func "
    "noise_sampler_seed timestep_scaling eta stochastic_sampling scale_factors upscale_mode "
    "s_noise clip_denoised quantization_config tensor_format timestep_values predict_epsilon";

}  // namespace

const std::vector<SamplerClass>& SamplerClasses() {
  static const auto* const classes = new std::vector<SamplerClass>(MakeClasses());
  return *classes;
}

bool HasWord(std::string_view words, std::string_view word) {
  for (absl::string_view w : absl::StrSplit(absl::string_view(words.data(), words.size()), ' ')) {
    if (std::string_view(w.data(), w.size()) == word) return true;
  }
  return false;
}

bool IsInertOption(std::string_view key) { return HasWord(kInert, key); }

bool SamplerClass::Takes(std::string_view option) const {
  return std::any_of(options.begin(), options.end(),
                     [&](std::string_view group) { return HasWord(group, option); });
}

void ApplyClassDefaults(SamplerOptions& o) {
  const std::string_view name = o.sampler->name;
  switch (o.sampler->kind) {
    case SamplerKind::kLcm:
    case SamplerKind::kTcd:
      o.beta_schedule = "scaled_linear";
      o.beta_start = 0.00085;
      o.beta_end = 0.012;
      break;
    case SamplerKind::kHeun:
    case SamplerKind::kKdpm2:
    case SamplerKind::kDpmSde:
      o.timestep_spacing = "linspace";
      o.beta_start = 0.00085;
      o.beta_end = 0.012;
      break;
    case SamplerKind::kEuler:
    case SamplerKind::kMultistep:
    case SamplerKind::kInverse:
      o.timestep_spacing = "linspace";
      break;
    case SamplerKind::kPndm:
      o.set_alpha_to_one = false;
      break;
    case SamplerKind::kUnClip:
      o.beta_schedule = "squaredcos_cap_v2";
      break;
    case SamplerKind::kEdm:
      o.sigma_min = 0.002;
      o.sigma_max = 80.0;
      break;
    case SamplerKind::kConsistency:
      o.num_train_timesteps = 40;
      o.sigma_min = 0.002;
      o.sigma_max = 80.0;
      o.prediction_type = "";
      break;
    case SamplerKind::kFlow:
    case SamplerKind::kFlowHeun:
      o.prediction_type = "flow_prediction";
      break;
    case SamplerKind::kDdim:
    case SamplerKind::kDdpm:
    case SamplerKind::kRePaint:
    case SamplerKind::kIpndm:
      break;
  }
  if (name == "CogVideoXDDIMScheduler" || name == "CogVideoXDPMScheduler") {
    o.beta_schedule = "scaled_linear";
    o.beta_start = 0.00085;
    o.beta_end = 0.012;
  }
  if (name == "CosineDPMSolverMultistepScheduler") {
    o.sigma_min = 0.3;
    o.sigma_max = 500.0;
    o.sigma_data = 1.0;
    o.sigma_schedule = "exponential";
    o.prediction_type = "v_prediction";
  }
}

}  // namespace mergeplan
