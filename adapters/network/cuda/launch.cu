#include "adapters/network/cuda/launch.h"

#include <cuda_runtime.h>

#include "planner/device/launch.cuh"

// Kernels: each calls the thread of its name in bodies.h. Compiled with -fmad=false, so that a
// landing has the digits that LibTorch's operations give it.
namespace mergeplan::network_device::cuda {
namespace {

using device::cuda::Launch;
using device::cuda::Thread;

template <typename X>
__global__ void LandKernel(LandArgs q, std::size_t threads) {
  if (Thread() < threads) LandThread<X>(q, static_cast<std::int64_t>(Thread()));
}
template <typename X>
__global__ void PullKernel(PullArgs q, std::size_t threads) {
  if (Thread() < threads) PullThread<X>(q, static_cast<std::int64_t>(Thread()));
}
template <typename T>
__global__ void AverageKernel(AverageArgs q, std::size_t threads) {
  if (Thread() < threads) AverageThread<T>(q, static_cast<std::int64_t>(Thread()));
}

}  // namespace

int Run(void* stream, const LandArgs& q) {
  return device::WithType(q.number, [&](auto type) {
    return Launch(LandKernel<decltype(type)>, stream, q, static_cast<std::size_t>(q.numbers));
  });
}
int Run(void* stream, const PullArgs& q) {
  return device::WithType(q.number, [&](auto type) {
    return Launch(PullKernel<decltype(type)>, stream, q, static_cast<std::size_t>(q.numbers));
  });
}
int Run(void* stream, const AverageArgs& q) {
  const std::size_t threads = static_cast<std::size_t>(q.pieces) * kThreads;
  return q.wide ? Launch(AverageKernel<double>, stream, q, threads)
                : Launch(AverageKernel<float>, stream, q, threads);
}

}  // namespace mergeplan::network_device::cuda
