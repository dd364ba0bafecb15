#include "adapters/linear/cuda/launch.h"

#include <cuda_runtime.h>

#include "planner/device/launch.cuh"

// Kernels: each calls the thread of its name in bodies.h. Compiled with -fmad=false, so that the
// noise has the digits that it has on the processor.
namespace mergeplan::linear_device::cuda {
namespace {

using device::cuda::Launch;
using device::cuda::Thread;

__global__ void SliceKernel(SliceArgs q, std::size_t threads) {
  if (Thread() < threads) SliceThread(q, static_cast<std::int64_t>(Thread()));
}
__global__ void SumKernel(SumArgs q, std::size_t threads) {
  if (Thread() < threads) SumThread(q, static_cast<std::int64_t>(Thread()));
}

}  // namespace

int Run(void* stream, const SliceArgs& q) {
  return Launch(SliceKernel, stream, q,
                static_cast<std::size_t>(q.merges * q.count * q.slices * q.d));
}
int Run(void* stream, const SumArgs& q) {
  return Launch(SumKernel, stream, q, static_cast<std::size_t>(q.sums_count));
}

}  // namespace mergeplan::linear_device::cuda
