#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/device/memory.h"
#include "planner/search/cuda/bodies.h"

namespace mergeplan::search::device {

// Memory that kernels work on, and the kernels. Calls, errors and threads as those of Memory.
class Backend : public mergeplan::device::Memory {
 public:
  virtual absl::Status Run(const TileArgs& args) = 0;
  virtual absl::Status Run(const UntileArgs& args) = 0;
  virtual absl::Status Run(const PairArgs& args) = 0;
  virtual absl::Status Run(const ValueArgs& args) = 0;
  virtual absl::Status Run(const CoveredArgs& args) = 0;
  virtual absl::Status Run(const AmongArgs& args) = 0;
  virtual absl::Status Run(const AppendArgs& args) = 0;
  virtual absl::Status Run(const SlackArgs& args) = 0;
};

// The first CUDA device that is visible (CUDA_VISIBLE_DEVICES chooses). UNAVAILABLE where there is
// none, no driver, or where the program was built without CUDA. Compiled from cuda_backend.cc or,
// without nvcc, from no_cuda.cc.
absl::StatusOr<std::unique_ptr<Backend>> OpenCuda();

// The same kernels as loops on the processor, blocks and threads last to first. For tests: it is
// slower than the processor's own path.
std::unique_ptr<Backend> Emulation();

}  // namespace mergeplan::search::device
