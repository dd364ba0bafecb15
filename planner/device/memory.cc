#include "planner/device/memory.h"

namespace mergeplan::device {

absl::Status NoCuda() {
  return absl::UnavailableError(
      "this program was built without CUDA (nvcc was not found, or MERGEPLAN_CUDA is OFF)");
}

}  // namespace mergeplan::device
