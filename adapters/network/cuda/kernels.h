#pragma once

#include <memory>

#include "absl/status/status.h"
#include "adapters/network/cuda/bodies.h"

namespace mergeplan::network_device {

// Kernels on memory of one kind: a CUDA device's, or the processor's for the emulation. They go
// into `stream` (CUDA's, of the device that this thread's calls go to; the emulation has none), in
// order, and are not waited for. Errors are those of Memory (planner/device/memory.h).
class Kernels {
 public:
  virtual ~Kernels() = default;
  virtual absl::Status Run(void* stream, const LandArgs& args) const = 0;
  virtual absl::Status Run(void* stream, const PullArgs& args) const = 0;
  virtual absl::Status Run(void* stream, const AverageArgs& args) const = 0;
};

// Null where the program was built without CUDA. From cuda_kernels.cc or no_cuda.cc.
const Kernels* CudaKernels();

// The same kernels as loops on the processor, blocks and threads last to first. For tests.
std::unique_ptr<Kernels> Emulation();

}  // namespace mergeplan::network_device
