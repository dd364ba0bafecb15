#include "planner/search/cuda/launch.h"

#include <cuda_runtime.h>

#include "planner/device/launch.cuh"

// Kernels: each calls the thread of its name in bodies.h. Compiled with -fmad=false, so that sums
// of products are rounded as on the processor.
namespace mergeplan::search::device::cuda {
namespace {

using mergeplan::device::cuda::Launch;
using mergeplan::device::cuda::Stream;
using mergeplan::device::cuda::Thread;

__global__ void TileKernel(TileArgs q, std::size_t threads) {
  if (Thread() < threads) TileThread(q, Thread());
}
__global__ void UntileKernel(UntileArgs q, std::size_t threads) {
  if (Thread() < threads) UntileThread(q, Thread());
}
__global__ void PairKernel(PairArgs q, std::size_t threads) {
  if (Thread() >= threads) return;
  const std::uint64_t pair = q.begin + Thread();
  double bound;
  if (PairThread(q, pair, &bound)) q.found[atomicAdd(q.count, 1ULL)] = {bound, pair};
}
__global__ void ValueKernel(ValueArgs q, std::size_t threads) {
  if (Thread() < threads) ValueThread(q, Thread());
}
__global__ void CoveredKernel(CoveredArgs q, std::size_t threads) {
  if (Thread() >= threads) return;
  const std::uint32_t covered = CoveredThread(q, Thread());
  if (covered != 0) atomicMax(&q.covered[Thread() % q.batch_count], covered);
}
__global__ void AmongKernel(AmongArgs q, std::size_t threads) {
  if (Thread() < threads) AmongThread(q, Thread());
}
__global__ void AppendKernel(AppendArgs q, std::size_t threads) {
  if (Thread() < threads) AppendThread(q, Thread());
}
__global__ void LossKernel(SlackArgs q, std::size_t threads) {
  if (Thread() < threads) LossThread(q, Thread());
}
// One block.
__global__ void DecideKernel(SlackArgs q) {
  __shared__ Least least[kThreads];
  least[threadIdx.x] = DecideShare(q, threadIdx.x);
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      least[threadIdx.x] = LeastOf(least[threadIdx.x], least[threadIdx.x + half]);
    }
  }
  __syncthreads();
  DecideColumns(q, least[0], threadIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) DecideLast(q, least[0]);
}

}  // namespace

int Run(void* stream, const TileArgs& q) {
  return Launch(TileKernel, stream, q, TiledSize(q.n, q.entries));
}
int Run(void* stream, const UntileArgs& q) {
  return Launch(UntileKernel, stream, q, TiledSize(q.n, q.entries));
}
int Run(void* stream, const PairArgs& q) {
  return Launch(PairKernel, stream, q, static_cast<std::size_t>(q.end - q.begin));
}
int Run(void* stream, const ValueArgs& q) {
  return Launch(ValueKernel, stream, q, TiledSize(q.n, q.count));
}
int Run(void* stream, const CoveredArgs& q) {
  return Launch(CoveredKernel, stream, q, CoveredThreads(q));
}
int Run(void* stream, const AmongArgs& q) {
  return Launch(AmongKernel, stream, q, q.count * q.count);
}
int Run(void* stream, const AppendArgs& q) {
  return Launch(AppendKernel, stream, q, q.count * q.n);
}
int Run(void* stream, const SlackArgs& q) {
  if (const int error = Launch(LossKernel, stream, q, q.most); error != 0) return error;
  DecideKernel<<<1, kThreads, 0, Stream(stream)>>>(q);
  return cudaGetLastError();
}

}  // namespace mergeplan::search::device::cuda
