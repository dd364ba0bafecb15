#pragma once

#include "adapters/linear/cuda/bodies.h"

// The border to the translation unit that nvcc compiles (launch.cu): plain functions, raw pointers,
// C++17. They return CUDA's error number, 0 for success.
namespace mergeplan::linear_device::cuda {

int Run(void* stream, const SliceArgs& args);
int Run(void* stream, const SumArgs& args);

}  // namespace mergeplan::linear_device::cuda
