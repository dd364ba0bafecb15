#pragma once

#include "adapters/vae_latent/cuda/bodies.h"

// The border to the translation unit that nvcc compiles (launch.cu): plain functions, raw pointers,
// C++17. They return CUDA's error number, 0 for success.
namespace mergeplan::latents_device::cuda {

int Run(void* stream, const SumArgs& args);
int Run(void* stream, const JoinArgs& args);
int Run(void* stream, const FinishArgs& args);
int Run(void* stream, const CentreArgs& args);

}  // namespace mergeplan::latents_device::cuda
