#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/schedule/diffusers_options.h"
#include "planner/schedule/schedule.h"

namespace mergeplan {

// In which coordinates a sampler's sigmas are meant, and hence what its samples are.
enum class LevelKind {
  kTable,       // timesteps index alphas_cumprod; z = sqrt(a) x0 + sqrt(1-a) eps
  kPreserving,  // sigma/alpha ratios; samples as in kTable (multistep samplers)
  kExploding,   // z = x0 + sigma eps (Euler, LMS, Heun, KDPM2)
  kEdm,         // the same, networks preconditioned with sigma_data
  kFlow,        // z = (1 - sigma) x0 + sigma eps
};

// What a scheduler of diffusers holds after set_timesteps(N), in its own order (noisiest first
// except for the inverse samplers) and rounded as it rounds (float32), and the levels that follow.
struct DiffusersTables {
  std::string class_name;
  std::string prediction_type;
  int num_train_timesteps = 0;
  int requested_steps = 0;  // N

  // num_train_timesteps values each; empty for classes without a table.
  std::vector<double> betas;
  std::vector<double> alphas_cumprod;
  // Where the class has it (DDIM, PNDM, LCM, TCD, …; of DDIMInverse initial_alpha_cumprod).
  std::optional<double> final_alpha_cumprod;

  std::vector<double> timesteps;
  std::vector<double> sigmas;  // empty for classes without sigmas
  double init_noise_sigma = 1.0;

  // ---- the levels, noisiest first, the last one is where the last step lands
  LevelKind level_kind = LevelKind::kTable;
  double sigma_data = 1.0;     // kEdm
  bool inverted_flow = false;  // kFlow: the network says x0 - eps
  struct Level {
    double alpha = 0;     // in native coordinates
    double sigma = 0;     // in native coordinates
    double timestep = 0;  // what the network is told here; NaN on the last
  };
  std::vector<Level> levels;  // repeats still in
  std::vector<std::string> notes;
};

// Computes what the class named by the options holds after set_timesteps(steps). INVALID_ARGUMENT
// names `path`, the option or number of steps that cannot be, and what to do. O(num_train_timesteps
// + steps log num_train_timesteps).
absl::StatusOr<DiffusersTables> ComputeDiffusersTables(const SamplerOptions& options, int steps,
                                                       const std::string& path);

// The same from the text of a scheduler_config.json; see LoadSchedule for the parameters.
absl::StatusOr<DiffusersTables> ReadDiffusersTables(std::string_view json, int steps,
                                                    const std::string& path,
                                                    const std::vector<SpecParameter>& parameters);

// The distinct levels of the tables as a schedule in planning coordinates (see Schedule). Levels
// whose alpha/sigma agree within 1e-5 count as one; T becomes what is left, with a note.
absl::StatusOr<Schedule> ScheduleOfTables(const DiffusersTables& tables, const std::string& path);

}  // namespace mergeplan
