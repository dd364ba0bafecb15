#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/search/cuda/bodies.h"

namespace mergeplan::search::device {

// Memory that kernels work on, and the kernels. Calls are carried out in order; Download waits for
// all before it, and reports what went wrong in any of them. One thread at a time. All errors are
// UNAVAILABLE, or RESOURCE_EXHAUSTED where the memory does not suffice; after an error nothing but
// Release is of use.
class Backend {
 public:
  virtual ~Backend() = default;

  // For people: "NVIDIA H100 PCIe, 79 GiB, CUDA driver 13.0".
  virtual std::string name() const = 0;

  virtual absl::StatusOr<void*> Allocate(std::size_t bytes) = 0;
  virtual void Release(void* memory) = 0;
  virtual absl::Status Upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual absl::Status Download(void* to, const void* from, std::size_t bytes) = 0;
  virtual absl::Status Copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual absl::Status Zero(void* to, std::size_t bytes) = 0;

  virtual absl::Status Run(const TileArgs& args) = 0;
  virtual absl::Status Run(const UntileArgs& args) = 0;
  virtual absl::Status Run(const PairArgs& args) = 0;
  virtual absl::Status Run(const ValueArgs& args) = 0;
  virtual absl::Status Run(const CoveredArgs& args) = 0;
  virtual absl::Status Run(const AmongArgs& args) = 0;
  virtual absl::Status Run(const AppendArgs& args) = 0;
  virtual absl::Status Run(const SlackArgs& args) = 0;
};

// The first CUDA device that is visible (CUDA_VISIBLE_DEVICES chooses). UNAVAILABLE where there is
// none, no driver, or where the program was built without CUDA. Compiled from cuda_backend.cc or,
// without nvcc, from no_cuda.cc.
absl::StatusOr<std::unique_ptr<Backend>> OpenCuda();

// The same kernels as loops on the processor, blocks and threads last to first. For tests: it is
// slower than the processor's own path.
std::unique_ptr<Backend> Emulation();

}  // namespace mergeplan::search::device
