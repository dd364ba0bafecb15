#pragma once

#include <cstddef>

#include <cuda_runtime.h>

#include "planner/device/blocks.h"

// Kernels of one dimension: kernel(args, threads), every thread with a number below `threads`.
namespace mergeplan::device::cuda {

__device__ inline std::size_t Thread() {
  return static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x;
}

inline cudaStream_t Stream(void* stream) { return static_cast<cudaStream_t>(stream); }

// CUDA's error number.
template <class Args>
int Launch(void (*kernel)(Args, std::size_t), void* stream, const Args& args, std::size_t threads) {
  if (threads == 0) return cudaSuccess;
  const std::size_t blocks = (threads + kThreads - 1) / kThreads;
  if (blocks > 0x7fffffff) return cudaErrorInvalidConfiguration;
  kernel<<<static_cast<unsigned>(blocks), kThreads, 0, Stream(stream)>>>(args, threads);
  return cudaGetLastError();
}

}  // namespace mergeplan::device::cuda
