#pragma once

#include <string>
#include <utility>

#include "planner/device/cuda.h"
#include "planner/device/memory.h"

namespace mergeplan::device {

// CUDA's error number as a status; 0 is OK. `what` was being done.
absl::Status CudaStatus(int error, const char* what);

struct CudaStream {
  std::string name;  // of the device
  void* stream = nullptr;
};
// UNAVAILABLE where there is no driver or no visible device of that number.
absl::StatusOr<CudaStream> OpenCudaStream(int device);

// A device's memory behind `Interface`, a class derived from Memory.
template <class Interface>
class CudaMemory : public Interface {
 public:
  explicit CudaMemory(CudaStream opened) : opened_(std::move(opened)) {}
  ~CudaMemory() override { cuda::Close(opened_.stream); }
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  std::string name() const override { return opened_.name; }

  absl::StatusOr<void*> Allocate(std::size_t bytes) override {
    void* memory = nullptr;
    if (absl::Status status = CudaStatus(cuda::Allocate(bytes, &memory), "allocation");
        !status.ok()) {
      return status;
    }
    return memory;
  }
  void Release(void* memory) override { cuda::Release(memory); }
  absl::Status Upload(void* to, const void* from, std::size_t bytes) override {
    return CudaStatus(cuda::Upload(stream(), to, from, bytes), "a copy to the device");
  }
  absl::Status Download(void* to, const void* from, std::size_t bytes) override {
    return CudaStatus(cuda::Download(stream(), to, from, bytes), "a copy from the device");
  }
  absl::Status Copy(void* to, const void* from, std::size_t bytes) override {
    return CudaStatus(cuda::Copy(stream(), to, from, bytes), "a copy on the device");
  }
  absl::Status Zero(void* to, std::size_t bytes) override {
    return CudaStatus(cuda::Zero(stream(), to, bytes), "setting memory to zero");
  }

 protected:
  void* stream() const { return opened_.stream; }

 private:
  CudaStream opened_;
};

}  // namespace mergeplan::device
