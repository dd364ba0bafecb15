#include "planner/device/cuda.h"

#include <cstdio>

#include <cuda_runtime.h>

#include "planner/device/launch.cuh"

namespace mergeplan::device::cuda {

const char* ErrorText(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }

int Open(int device, char* name, std::size_t size, void** stream) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) return error;
  if (count == 0) return cudaErrorNoDevice;
  if (device < 0 || device >= count) return cudaErrorInvalidDevice;
  if (const cudaError_t error = cudaSetDevice(device); error != cudaSuccess) return error;
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, device);
      error != cudaSuccess) {
    return error;
  }
  int driver = 0;
  cudaDriverGetVersion(&driver);
  std::snprintf(name, size, "%s, %.0f GiB, CUDA driver %d.%d", properties.name,
                static_cast<double>(properties.totalGlobalMem) / (1 << 30), driver / 1000,
                driver % 1000 / 10);
  cudaStream_t made;
  if (const cudaError_t error = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
      error != cudaSuccess) {
    return error;
  }
  *stream = made;
  return cudaSuccess;
}

void Close(void* stream) { cudaStreamDestroy(Stream(stream)); }
int Use(int device) { return cudaSetDevice(device); }

int Allocate(std::size_t bytes, void** memory) { return cudaMalloc(memory, bytes); }
void Release(void* memory) { cudaFree(memory); }

int Upload(void* stream, void* to, const void* from, std::size_t bytes) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, Stream(stream));
}
int Download(void* stream, void* to, const void* from, std::size_t bytes) {
  const cudaError_t error =
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, Stream(stream));
  return error != cudaSuccess ? error : cudaStreamSynchronize(Stream(stream));
}
int Copy(void* stream, void* to, const void* from, std::size_t bytes) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, Stream(stream));
}
int Zero(void* stream, void* to, std::size_t bytes) {
  return cudaMemsetAsync(to, 0, bytes, Stream(stream));
}

int BeginRecord(void* stream) {
  return cudaStreamBeginCapture(Stream(stream), cudaStreamCaptureModeThreadLocal);
}
int EndRecord(void* stream, void** graph) {
  cudaGraph_t taken = nullptr;
  if (const cudaError_t error = cudaStreamEndCapture(Stream(stream), &taken);
      error != cudaSuccess) {
    return error;
  }
  cudaGraphExec_t made = nullptr;
  const cudaError_t error = cudaGraphInstantiateWithFlags(&made, taken, 0);
  cudaGraphDestroy(taken);
  *graph = made;
  return error;
}
int Replay(void* stream, void* graph) {
  return cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), Stream(stream));
}
void DropGraph(void* graph) { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)); }

}  // namespace mergeplan::device::cuda
