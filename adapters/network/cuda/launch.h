#pragma once

#include "adapters/network/cuda/bodies.h"

// The border to the translation unit that nvcc compiles (launch.cu): plain functions, raw pointers,
// C++17. They return CUDA's error number, 0 for success.
namespace mergeplan::network_device::cuda {

int Run(void* stream, const LandArgs& args);
int Run(void* stream, const PullArgs& args);
int Run(void* stream, const AverageArgs& args);

}  // namespace mergeplan::network_device::cuda
