#pragma once

#include "absl/status/status.h"

namespace mergeplan {

// Lets this thread's CUDA calls go to a device. UNAVAILABLE where the program was built without
// CUDA. From use_cuda.cc or, without nvcc, from no_cuda.cc.
absl::Status UseCuda(int index);

}  // namespace mergeplan
