#include "adapters/vae_latent/cuda/kernels.h"
#include "adapters/vae_latent/cuda/launch.h"
#include "planner/device/cuda_memory.h"

namespace mergeplan::latents_device {
namespace {

class OfCuda : public Kernels {
 public:
  absl::Status Run(void* stream, const SumArgs& args) const override {
    return device::CudaStatus(cuda::Run(stream, args), "moments of latents");
  }
  absl::Status Run(void* stream, const JoinArgs& args) const override {
    return device::CudaStatus(cuda::Run(stream, args), "joining moments of latents");
  }
  absl::Status Run(void* stream, const FinishArgs& args) const override {
    return device::CudaStatus(cuda::Run(stream, args), "moments of latents");
  }
  absl::Status Run(void* stream, const CentreArgs& args) const override {
    return device::CudaStatus(cuda::Run(stream, args), "centring latents");
  }
  std::int64_t threads() const override { return std::int64_t{1} << 18; }
};

}  // namespace

const Kernels* CudaKernels() {
  static const OfCuda kernels;
  return &kernels;
}

}  // namespace mergeplan::latents_device
