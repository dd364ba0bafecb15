#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/linear/cuda/bodies.h"
#include "planner/device/memory.h"

namespace mergeplan::linear_device {

// Memory that kernels work on, and the kernels. Calls, errors and threads as those of Memory.
class Backend : public device::Memory {
 public:
  // Lets the calls of this thread go to the device.
  virtual absl::Status Use() = 0;
  virtual absl::Status Run(const SliceArgs& args) = 0;
  virtual absl::Status Run(const SumArgs& args) = 0;
};

// A visible CUDA device by its number. UNAVAILABLE where there is none, no driver, or where the
// program was built without CUDA. From cuda_backend.cc or, without nvcc, from no_cuda.cc.
absl::StatusOr<std::unique_ptr<Backend>> OpenCuda(int index);

// The same kernels as loops on the processor, blocks and threads last to first. For tests.
std::unique_ptr<Backend> Emulation();

}  // namespace mergeplan::linear_device
