#include "adapters/network/cuda/kernels.h"
#include "adapters/network/cuda/launch.h"
#include "planner/device/cuda_memory.h"

namespace mergeplan::network_device {
namespace {

class OfCuda : public Kernels {
 public:
  absl::Status Run(void* stream, const LandArgs& args) const override {
    return device::CudaStatus(cuda::Run(stream, args), "a jump");
  }
  absl::Status Run(void* stream, const PullArgs& args) const override {
    return device::CudaStatus(cuda::Run(stream, args), "the gradient of a jump");
  }
  absl::Status Run(void* stream, const AverageArgs& args) const override {
    return device::CudaStatus(cuda::Run(stream, args), "the average of parameters");
  }
};

}  // namespace

const Kernels* CudaKernels() {
  static const OfCuda kernels;
  return &kernels;
}

}  // namespace mergeplan::network_device
