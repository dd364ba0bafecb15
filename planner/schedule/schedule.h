#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan {

// A noise schedule z_t = alpha_t x_0 + sigma_t eps on the levels 0 (clean) .. T (noisy), in the
// coordinates in which plans are made (eq:forward_process). alpha/sigma falls strictly.
//
// Schedules that are not variance preserving are turned into z/sqrt(alpha^2 + sigma^2) (EDM: also
// x_0/sigma_data), except explicit arrays, which are taken as they are. `level_scale` and
// `data_scale` lead back:
//   z_native[t] = level_scale[t] * z[t],   x_0 native = data_scale * x_0,
// so a variance lambda of the native data is lambda / data_scale^2 here and an objective is native
// when multiplied by data_scale^2.
struct Schedule {
  std::string spec;  // as the user wrote it; for a file its path
  std::string name;  // "cosine", "DDIMScheduler", "arrays", …: for people

  std::vector<double> alpha;        // T+1
  std::vector<double> sigma;        // T+1
  std::vector<double> level_scale;  // T+1; all 1 where nothing was turned
  double data_scale = 1.0;
  // Where the schedule has them: what a network is told at level t (T+1, entry 0 is unused and
  // NaN), else empty.
  std::vector<double> timesteps;
  // Where a config says so: "epsilon", "v_prediction", "sample", "flow_prediction"; else empty.
  std::string prediction_type;
  std::vector<std::string> notes;  // e.g. "timestep 0 occurs twice: T is 49, not 50"

  int steps() const { return static_cast<int>(alpha.size()) - 1; }
  // alpha^2 + sigma^2 = 1 within 1e-6 on all levels.
  bool variance_preserving() const;
};

// Reads SCHEDULE of the command line: a name with parameters ("flow:shift=3"), a diffusers
// scheduler_config.json (or the folder that holds it, or the one whose folder "scheduler" does), or
// a file with the arrays alpha and sigma (JSON or npz).
//
// `teacher_steps` (1 .. 100000) is needed for names and configs; for arrays it may be left out and
// must agree where given. Of a config the levels are the distinct noise levels of its class's
// set_timesteps(teacher_steps), level 0 is where its last step lands; T may become smaller, which a
// note says (planner/schedule/README.md).
//
// A config's path may be followed by ":key=value,…": options of its class in place of the file's
// ("timestep_spacing=trailing"), `class` in place of its _class_name, and for dynamic shifting `mu`
// or `image_seq_len`; with neither, mu is the config's max_shift, and a note says so.
//
// INVALID_ARGUMENT names the key, class, option or level t and says what was expected; a file that
// is no valid JSON says where (line, column).
absl::StatusOr<Schedule> LoadSchedule(const std::string& spec, std::optional<int> teacher_steps);

// The checks of a finished schedule: equal lengths >= 2, finite, alpha >= 0, sigma >= 0, sigma > 0
// from level 1 on, alpha/sigma strictly falling. An error names t.
absl::Status ValidateSchedule(const Schedule& schedule);

// The cosine schedule of the paper: alpha_t = cos(pi t / 2T), exact ends
// (subsec:pareto_dynamic_programming_results).
Schedule CosineSchedule(int teacher_steps);

// D(a, b) = alpha_a sigma_b - alpha_b sigma_a, by fma; positive for a < b.
double SignalNoiseDeterminant(const Schedule& schedule, int a, int b);

// The named schedules with their parameters, for --help: one line each.
std::vector<std::string> ScheduleNames();

}  // namespace mergeplan
