#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/experts/cuda/training.h"
#include "planner/device/memory.h"

namespace mergeplan::experts_device {

// How work may be cut.
struct BlockMemory {
  std::size_t shared = 48 << 10;     // bytes that a block of kStep has by itself; every device's
  std::size_t scratch = 256U << 20;  // bytes that each of three pieces of scratch should not exceed
};

// Memory that kernels work on, and the kernels. Calls, errors and threads as those of Memory.
class Backend : public device::Memory {
 public:
  // Lets the calls of this thread go to the device.
  virtual absl::Status Use() = 0;
  virtual absl::Status Run(Work work, const Training<float>& training) = 0;
  virtual absl::Status Run(Work work, const Training<double>& training) = 0;

  // Takes down the Runs that `launches` makes instead of making them; from then on Replay makes
  // them, as one launch. Every kernel must have been run before.
  virtual absl::Status Record(const std::function<absl::Status()>& launches) = 0;
  virtual absl::Status Replay() = 0;

  virtual BlockMemory memory() const = 0;
};

// A visible CUDA device by its number. UNAVAILABLE where there is none, no driver, or where the
// program was built without CUDA. From cuda_backend.cc or, without nvcc, from no_cuda.cc.
absl::StatusOr<std::unique_ptr<Backend>> OpenCuda(int index);

// The same kernels as loops on the processor, blocks and threads last to first. For tests.
std::unique_ptr<Backend> Emulation(const BlockMemory& memory);

}  // namespace mergeplan::experts_device
