#include "tests/planner/search/cuda/backends.h"

namespace mergeplan::search::device {

absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(const std::string& name) {
  if (name == "cuda") return OpenCuda();
  return Emulation();
}

}  // namespace mergeplan::search::device
