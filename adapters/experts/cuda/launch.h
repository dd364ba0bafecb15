#pragma once

#include "adapters/experts/cuda/training.h"

// The border to the translation unit that nvcc compiles (launch.cu): plain functions, raw pointers,
// C++17. They return CUDA's error number, 0 for success.
namespace mergeplan::experts_device::cuda {

int Run(void* stream, Work work, const Training<float>& training);
int Run(void* stream, Work work, const Training<double>& training);

}  // namespace mergeplan::experts_device::cuda
