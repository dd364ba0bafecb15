#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "absl/status/statusor.h"
#include "adapters/network/module.h"

namespace mergeplan::network {

// The parameters of a network that ask for gradients, in its order. INVALID_ARGUMENT where two of
// them share their memory: moved once for each name, they would not be what their optimizer says.
absl::StatusOr<std::vector<at::Tensor>> TrainableParameters(const Module& module);

}  // namespace mergeplan::network
