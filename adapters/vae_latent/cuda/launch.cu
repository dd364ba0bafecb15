#include "adapters/vae_latent/cuda/launch.h"

#include <cuda_runtime.h>

#include "planner/device/launch.cuh"

// Kernels: each calls the thread of its name in bodies.h.
namespace mergeplan::latents_device::cuda {
namespace {

using device::cuda::Launch;
using device::cuda::Thread;

template <typename X>
__global__ void SumKernel(SumArgs q, std::size_t threads) {
  if (Thread() < threads) SumThread<X>(q, static_cast<std::int64_t>(Thread()));
}
__global__ void JoinKernel(JoinArgs q, std::size_t threads) {
  if (Thread() < threads) JoinThread(q, static_cast<std::int64_t>(Thread()));
}
__global__ void FinishKernel(FinishArgs q, std::size_t threads) {
  if (Thread() < threads) FinishThread(q, static_cast<std::int64_t>(Thread()));
}
template <typename X>
__global__ void CentreKernel(CentreArgs q, std::size_t threads) {
  if (Thread() < threads) CentreThread<X>(q, static_cast<std::int64_t>(Thread()));
}

}  // namespace

int Run(void* stream, const SumArgs& q) {
  return device::WithType(q.number, [&](auto type) {
    return Launch(SumKernel<decltype(type)>, stream, q, static_cast<std::size_t>(q.blocks * q.d));
  });
}
int Run(void* stream, const JoinArgs& q) {
  return Launch(JoinKernel, stream, q, static_cast<std::size_t>(Pairs(q) * q.d));
}
int Run(void* stream, const FinishArgs& q) {
  return Launch(FinishKernel, stream, q, static_cast<std::size_t>(q.d));
}
int Run(void* stream, const CentreArgs& q) {
  return device::WithType(q.number, [&](auto type) {
    return Launch(CentreKernel<decltype(type)>, stream, q, static_cast<std::size_t>(q.numbers));
  });
}

}  // namespace mergeplan::latents_device::cuda
