#include "planner/search/cuda/backend.h"

namespace mergeplan::search::device {

absl::StatusOr<std::unique_ptr<Backend>> OpenCuda() { return mergeplan::device::NoCuda(); }

}  // namespace mergeplan::search::device
