#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan::device {

// Memory that kernels work on. Calls are carried out in order; Download waits for all before it,
// and reports what went wrong in any of them. One thread at a time. All errors are UNAVAILABLE, or
// RESOURCE_EXHAUSTED where the memory does not suffice; after an error nothing but Release is of
// use.
class Memory {
 public:
  virtual ~Memory() = default;

  // For people: "NVIDIA H100 PCIe, 79 GiB, CUDA driver 13.0".
  virtual std::string name() const = 0;

  virtual absl::StatusOr<void*> Allocate(std::size_t bytes) = 0;
  virtual void Release(void* memory) = 0;
  virtual absl::Status Upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual absl::Status Download(void* to, const void* from, std::size_t bytes) = 0;
  virtual absl::Status Copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual absl::Status Zero(void* to, std::size_t bytes) = 0;
};

// UNAVAILABLE: why a program built without CUDA has no device.
absl::Status NoCuda();

}  // namespace mergeplan::device
