#include "adapters/denoising/levels.h"

#include <cmath>
#include <limits>

#include "adapters/network/levels.h"
#include "adapters/network/loss.h"
#include "adapters/network/wrapper.h"
#include "planner/base/status_macros.h"

namespace mergeplan::denoising {

absl::StatusOr<std::vector<Level>> TrainingLevels(const network::Signature& signature,
                                                  const Schedule& schedule,
                                                  const Options& options) {
  MP_ASSIGN_OR_RETURN(const std::vector<network::LevelInput> inputs,
                      network::LevelInputs(signature, schedule));
  std::vector<Level> out;
  for (int t = 1; t <= schedule.steps(); ++t) {
    MP_ASSIGN_OR_RETURN(const network::OutputMix mix, network::OutputAt(signature, schedule, t));
    Level level;
    level.input_data = inputs[t].scale * schedule.alpha[t] / schedule.data_scale;
    level.input_noise = inputs[t].scale * schedule.sigma[t];
    level.output_data = mix.data / schedule.data_scale;
    level.output_noise = mix.noise;
    level.time = inputs[t].time;
    if (!options.own_loss) {
      // Factors are stated for the error of the state that the wrapper lands on.
      MP_ASSIGN_OR_RETURN(const double factor, network::LossFactor(options.loss, schedule, t, 0));
      MP_ASSIGN_OR_RETURN(const network::Landing landing,
                          network::LandingAt(signature, schedule, t, 0));
      level.weight = factor * landing.output * landing.output;
    }
    out.push_back(level);
  }
  return out;
}

Schedule ScheduleOfTable(const network::TrainingTable& table) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  Schedule out;
  out.spec = out.name = "the network's table";
  out.alpha = {1};
  out.sigma = {0};
  out.level_scale = {1};
  out.timesteps = {kNone};
  for (std::size_t k = 0; k < table.alpha.size(); ++k) {
    const double size = std::hypot(table.alpha[k], table.sigma[k]);
    out.alpha.push_back(table.alpha[k] / size);
    out.sigma.push_back(table.sigma[k] / size);
    out.level_scale.push_back(size);
    out.timesteps.push_back(table.timestep.empty() ? kNone : table.timestep[k]);
  }
  return out;
}

}  // namespace mergeplan::denoising
