#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "adapters/denoising/options.h"
#include "adapters/network/signature.h"
#include "planner/schedule/schedule.h"

namespace mergeplan::denoising {

// What a network sees at one noise level, and what it should say of it:
//   input = input_data x0 + input_noise eps,   output = output_data x0 + output_noise eps
// with x0 in native units. `weight` multiplies the squared error of the output.
struct Level {
  double input_data = 0, input_noise = 0;
  double output_data = 0, output_noise = 0;
  double time = 0;
  double weight = 1;
};

// The levels 1..T of a schedule. Errors of LevelInputs, OutputAt and LossFactor, which name the
// level: epsilon where there is no signal, a weighting that is 0 or infinite there.
absl::StatusOr<std::vector<Level>> TrainingLevels(const network::Signature& signature,
                                                  const Schedule& schedule, const Options& options);

// The entries of a network's own table as a schedule, a clean level before them.
Schedule ScheduleOfTable(const network::TrainingTable& table);

}  // namespace mergeplan::denoising
