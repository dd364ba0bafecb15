#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "planner/device/numbers.h"

namespace mergeplan {

// The CUDA stream into which LibTorch puts this thread's work on the device of `tensor` now (of a
// graph that is being taken down, the graph's), for kernels of our own; this thread's CUDA calls go
// to that device afterwards. Null for the processor. UNAVAILABLE where the program was built
// without CUDA. Throws c10::Error.
absl::StatusOr<void*> StreamOf(const at::Tensor& tensor);

// The name of a type that kernels read; none for others.
std::optional<device::Number> NumberOf(at::ScalarType type);

}  // namespace mergeplan
