#include "adapters/network/cuda/kernels.h"

namespace mergeplan::network_device {

const Kernels* CudaKernels() { return nullptr; }

}  // namespace mergeplan::network_device
