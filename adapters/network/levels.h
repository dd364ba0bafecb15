#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "adapters/network/signature.h"
#include "planner/schedule/schedule.h"

namespace mergeplan::network {

// What a network gets at one level of a run.
struct LevelInput {
  double time = 0;   // as it wants it, scale and offset applied
  double scale = 1;  // the state in the schedule's coordinates times this
};

// One for each level 0..T of the schedule (entry 0 is not used). Where the network says which
// table it was trained with, a level of the run is found in it by its signal-to-noise ratio
// (linearly in log alpha/sigma between entries; the same number where the level is an entry);
// otherwise the run's own timesteps and coordinates are the network's. INVALID_ARGUMENT names the
// level and says what to do: no timesteps anywhere, a level beyond the table by more than 0.02 rad
// of atan(sigma/alpha), a log-snr that is infinite. O(T log of the table's length).
absl::StatusOr<std::vector<LevelInput>> LevelInputs(const Signature& signature,
                                                    const Schedule& schedule);

}  // namespace mergeplan::network
