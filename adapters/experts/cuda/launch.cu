#include "adapters/experts/cuda/launch.h"

#include <cuda_runtime.h>

#include "adapters/experts/cuda/rows.h"
#include "adapters/experts/cuda/step.h"
#include "adapters/experts/cuda/update.h"
#include "planner/device/launch.cuh"

// Kernels: each calls what its thread does in rows.h, step.h or update.h. Compiled with
// -fmad=false, so that a teacher's step has the digits that it has on the processor.
namespace mergeplan::experts_device::cuda {
namespace {

using device::cuda::Launch;
using device::cuda::Stream;
using device::cuda::Thread;

template <typename T, Work kWork>
__global__ void UpdateKernel(Training<T> q, std::size_t threads) {
  if (Thread() < threads) UpdateWork(kWork, q, static_cast<Size>(Thread()));
}
template <typename T>
__global__ void RowsKernel(Training<T> q, std::size_t threads) {
  if (Thread() < threads) RowsThread(q, static_cast<Size>(Thread()));
}
template <typename T>
__global__ void PoolKernel(Training<T> q, std::size_t threads) {
  if (Thread() < threads) PoolThread(q, static_cast<Size>(Thread()));
}

template <typename T>
__global__ void __launch_bounds__(kThreads) StepKernel(Training<T> q) {
  extern __shared__ double shared[];
  T* memory = q.block_memory == nullptr ? reinterpret_cast<T*>(shared)
                                        : q.block_memory + blockIdx.x * StepNumbers(q.d, q.E, q.H);
  for (Size at = blockIdx.x; at < q.tasks * q.parts; at += gridDim.x) {
    for (Size tile = 0; tile < q.part_tiles; ++tile) {
      for (int phase = 0; phase < kStepPhases; ++phase) {
        StepPhase(q, at, tile, phase, static_cast<Size>(threadIdx.x), memory);
        __syncthreads();
      }
    }
  }
}

template <typename T, Work kWork>
int LaunchUpdate(void* stream, const Training<T>& q) {
  return Launch(UpdateKernel<T, kWork>, stream, q, static_cast<std::size_t>(Threads(kWork, q)));
}

template <typename T>
int RunAny(void* stream, Work work, const Training<T>& q) {
  switch (work) {
    case Work::kBegin:
      return LaunchUpdate<T, Work::kBegin>(stream, q);
    case Work::kPrepare:
      return LaunchUpdate<T, Work::kPrepare>(stream, q);
    case Work::kExperts:
      return LaunchUpdate<T, Work::kExperts>(stream, q);
    case Work::kSums:
      return LaunchUpdate<T, Work::kSums>(stream, q);
    case Work::kPull:
      return LaunchUpdate<T, Work::kPull>(stream, q);
    case Work::kGradient:
      return LaunchUpdate<T, Work::kGradient>(stream, q);
    case Work::kCheck:
      return LaunchUpdate<T, Work::kCheck>(stream, q);
    case Work::kUpdate:
      return LaunchUpdate<T, Work::kUpdate>(stream, q);
    case Work::kFinish:
      return LaunchUpdate<T, Work::kFinish>(stream, q);
    case Work::kRows:
      return Launch(RowsKernel<T>, stream, q, static_cast<std::size_t>(q.lanes));
    case Work::kPool:
      return Launch(PoolKernel<T>, stream, q, static_cast<std::size_t>(q.lanes));
    case Work::kStep:
      break;
  }
  if (q.tasks * q.parts == 0) return cudaSuccess;
  const std::size_t bytes = q.block_memory != nullptr
                                ? 0
                                : static_cast<std::size_t>(StepNumbers(q.d, q.E, q.H)) * sizeof(T);
  StepKernel<T><<<static_cast<unsigned>(q.blocks), kThreads, bytes, Stream(stream)>>>(q);
  return cudaGetLastError();
}

}  // namespace

int Run(void* stream, Work work, const Training<float>& q) { return RunAny(stream, work, q); }
int Run(void* stream, Work work, const Training<double>& q) { return RunAny(stream, work, q); }

}  // namespace mergeplan::experts_device::cuda
