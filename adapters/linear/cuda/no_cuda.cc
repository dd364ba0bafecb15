#include "adapters/linear/cuda/backend.h"

namespace mergeplan::linear_device {

absl::StatusOr<std::unique_ptr<Backend>> OpenCuda(int) { return device::NoCuda(); }

}  // namespace mergeplan::linear_device
