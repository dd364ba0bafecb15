#include "adapters/stream/use_cuda.h"

#include "planner/device/cuda_memory.h"

namespace mergeplan {

absl::Status UseCuda(int index) {
  return device::CudaStatus(device::cuda::Use(index), "the choice of the device");
}

}  // namespace mergeplan
