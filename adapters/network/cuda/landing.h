#pragma once

#include <ATen/core/Tensor.h>

#include "adapters/network/cuda/kernels.h"

namespace mergeplan::network {

// Factors of the DDIM wrapper: numbers for all rows, or, where the tensors are defined, one for
// each row, [B, 1, …], of the states' type.
struct LandingFactors {
  double state = 0, output = 0;
  at::Tensor states, outputs;
};

// z * state + out * output, of z's type; differentiable in both. On CUDA one kernel does it, and
// one its gradient by `out` (once: it has no gradient of its own), where z has no gradient, both
// lie in memory alike without gaps, and `out` is double with double states, or float, float16 or
// bfloat16 with float ones; else LibTorch's operations. With `kernels` these, wherever the tensors
// lie: for tests. Throws c10::Error.
at::Tensor Land(const at::Tensor& z, const at::Tensor& out, const LandingFactors& factors,
                const network_device::Kernels* kernels = nullptr);

}  // namespace mergeplan::network
