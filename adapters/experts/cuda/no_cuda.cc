#include "adapters/experts/cuda/backend.h"

namespace mergeplan::experts_device {

absl::StatusOr<std::unique_ptr<Backend>> OpenCuda(int) { return device::NoCuda(); }

}  // namespace mergeplan::experts_device
