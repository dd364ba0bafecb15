#include "planner/search/cuda/backend.h"

namespace mergeplan::search::device {

absl::StatusOr<std::unique_ptr<Backend>> OpenCuda() {
  return absl::UnavailableError(
      "this program was built without CUDA (nvcc was not found, or MERGEPLAN_CUDA is OFF)");
}

}  // namespace mergeplan::search::device
