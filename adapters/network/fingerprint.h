#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "adapters/network/executor.h"

namespace mergeplan::network {

// Executor::fingerprint. Where a run is taken up, nothing of this may have changed; what only says
// how it is watched, kept or measured in pieces is not in it.
absl::StatusOr<std::string> FingerprintOf(const Module& student, const NetworkSteps& steps,
                                          const Plan& plan, const ExecutorOptions& options);

}  // namespace mergeplan::network
