#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace mergeplan {

// How a class of diffusers turns its options into noise levels.
enum class SamplerKind {
  kDdim,       // timesteps into alphas_cumprod, steps of num_train_timesteps / N
  kDdpm,       // timesteps into alphas_cumprod, ends clean
  kPndm,       // as kDdim, with repeated and half steps
  kLcm,        // a subset of the original training grid, ends clean
  kTcd,        // the same, ends at timestep 0
  kUnClip,     // both ends of the table, ends clean
  kRePaint,    // multiples of the stride, visited several times
  kIpndm,      // its own curve, sigma = sin^2
  kEuler,      // sigmas by interpolation: LMS, Euler, Euler ancestral
  kHeun,       // the same, every inner level twice
  kKdpm2,      // the same, midpoints between the timesteps
  kDpmSde,     // the same
  kMultistep,  // DPM-Solver, DEIS, UniPC, SA-Solver: N + 1 points without the cleanest
  kInverse,    // DPM-Solver run from clean to noisy
  kEdm,        // sigmas between sigma_min and sigma_max, no table
  kConsistency,
  kFlow,      // flow matching
  kFlowHeun,  // the same, every inner level twice
};

// A class that is known: its name, how it works, which options it takes and where its defaults
// differ.
struct SamplerClass {
  std::string_view name;
  SamplerKind kind;
  std::vector<std::string_view> options;  // groups of names, separated by blanks
  std::string_view beta_schedules;        // those it takes, separated by blanks
  bool Takes(std::string_view option) const;
};

// The options that move noise levels, with the defaults of most classes. Meanings as in diffusers.
struct SamplerOptions {
  const SamplerClass* sampler = nullptr;

  int num_train_timesteps = 1000;
  double beta_start = 0.0001;
  double beta_end = 0.02;
  std::string beta_schedule = "linear";
  std::optional<std::vector<double>> trained_betas;
  bool rescale_betas_zero_snr = false;
  double snr_shift_scale = 3.0;
  bool set_alpha_to_one = true;
  std::string prediction_type = "epsilon";

  std::string timestep_spacing = "leading";
  int steps_offset = 0;
  bool skip_prk_steps = false;
  int original_inference_steps = 50;
  double lambda_min_clipped = 0;  // no clipping where it is not finite or not given
  bool clips_lambda = false;

  bool use_karras_sigmas = false;
  bool use_exponential_sigmas = false;
  bool use_beta_sigmas = false;
  bool use_lu_lambdas = false;
  bool use_flow_sigmas = false;
  double flow_shift = 1.0;
  std::optional<double> sigma_min;
  std::optional<double> sigma_max;
  std::string final_sigmas_type = "zero";
  std::string interpolation_type = "linear";
  std::string timestep_type = "discrete";

  double sigma_data = 0.5;
  std::string sigma_schedule = "karras";
  double rho = 7.0;

  double shift = 1.0;
  bool use_dynamic_shifting = false;
  double base_shift = 0.5;
  double max_shift = 1.15;
  int base_image_seq_len = 256;
  int max_image_seq_len = 4096;
  std::optional<double> shift_terminal;
  std::string time_shift_type = "exponential";
  bool invert_sigmas = false;

  // Not options of a class: what a pipeline hands to set_timesteps.
  std::optional<double> mu;
  std::optional<int> image_seq_len;
};

// A parameter of the specification: key and value as written.
using SpecParameter = std::pair<std::string, std::string>;

// The options of the diffusers config that a SCHEDULE of the command line names (see LoadSchedule).
// INVALID_ARGUMENT where it names none.
absl::StatusOr<SamplerOptions> LoadSamplerOptions(const std::string& spec);

// The names of the classes that are known.
std::vector<std::string> SamplerClassNames();

// Reads the options of a parsed config. Keys that the file lacks have the defaults of its class;
// keys that belong to other classes, or that do not move noise levels, are ignored as diffusers
// does; `parameters` override the file ("class" the class) and must be options of the class.
// INVALID_ARGUMENT names `path`, the key, the value found and what was expected; an unknown class
// lists the known ones.
absl::StatusOr<SamplerOptions> ReadSamplerOptions(const nlohmann::json& config,
                                                  const std::string& path,
                                                  const std::vector<SpecParameter>& parameters);

}  // namespace mergeplan
