#include "adapters/vae_latent/cuda/kernels.h"

namespace mergeplan::latents_device {

const Kernels* CudaKernels() { return nullptr; }

}  // namespace mergeplan::latents_device
