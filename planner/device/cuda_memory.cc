#include "planner/device/cuda_memory.h"

#include "absl/strings/str_cat.h"

namespace mergeplan::device {
namespace {

constexpr int kOutOfMemory = 2;  // cudaErrorMemoryAllocation

}  // namespace

absl::Status CudaStatus(int error, const char* what) {
  if (error == 0) return absl::OkStatus();
  const std::string text =
      absl::StrCat("CUDA error ", error, " (", cuda::ErrorText(error), ") in ", what);
  return error == kOutOfMemory ? absl::ResourceExhaustedError(text) : absl::UnavailableError(text);
}

absl::StatusOr<CudaStream> OpenCudaStream(int device) {
  char name[320] = "";
  CudaStream out;
  if (const int error = cuda::Open(device, name, sizeof name, &out.stream); error != 0) {
    return absl::UnavailableError(
        absl::StrCat("no CUDA device: ", cuda::ErrorText(error), " (CUDA error ", error, ")"));
  }
  out.name = name;
  return out;
}

}  // namespace mergeplan::device
