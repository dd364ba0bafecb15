#include <utility>

#include "adapters/linear/cuda/backend.h"
#include "adapters/linear/cuda/launch.h"
#include "planner/base/status_macros.h"
#include "planner/device/cuda_memory.h"

namespace mergeplan::linear_device {
namespace {

class CudaBackend : public device::CudaMemory<Backend> {
 public:
  CudaBackend(device::CudaStream opened, int index)
      : CudaMemory(std::move(opened)), index_(index) {}

  absl::Status Use() override {
    return device::CudaStatus(device::cuda::Use(index_), "the choice of the device");
  }
  absl::Status Run(const SliceArgs& args) override {
    return device::CudaStatus(cuda::Run(stream(), args), "sums of squares");
  }
  absl::Status Run(const SumArgs& args) override {
    return device::CudaStatus(cuda::Run(stream(), args), "adding slices");
  }

 private:
  int index_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> OpenCuda(int index) {
  MP_ASSIGN_OR_RETURN(device::CudaStream opened, device::OpenCudaStream(index));
  return std::make_unique<CudaBackend>(std::move(opened), index);
}

}  // namespace mergeplan::linear_device
