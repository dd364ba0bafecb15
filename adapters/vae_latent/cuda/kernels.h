#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "adapters/vae_latent/cuda/bodies.h"

namespace mergeplan::latents_device {

// Kernels on memory of one kind: a CUDA device's, or the processor's for the emulation. They go
// into `stream` (CUDA's, of the device that this thread's calls go to; the emulation has none), in
// order, and are not waited for. Errors are those of Memory (planner/device/memory.h).
class Kernels {
 public:
  virtual ~Kernels() = default;
  virtual absl::Status Run(void* stream, const SumArgs& args) const = 0;
  virtual absl::Status Run(void* stream, const JoinArgs& args) const = 0;
  virtual absl::Status Run(void* stream, const FinishArgs& args) const = 0;
  virtual absl::Status Run(void* stream, const CentreArgs& args) const = 0;
  // About so many threads fill it.
  virtual std::int64_t threads() const = 0;
};

// Null where the program was built without CUDA. From cuda_kernels.cc or no_cuda.cc.
const Kernels* CudaKernels();

// The same kernels as loops on the processor, blocks and threads last to first. For tests.
std::unique_ptr<Kernels> Emulation(std::int64_t threads);

// In how many blocks the rows are cut: at least 16 rows each where there are as many, and enough to
// keep the threads busy.
std::int64_t BlocksOf(const Kernels& kernels, std::int64_t rows, std::int64_t d);

struct Rows {
  const void* data = nullptr;  // [rows][d]
  Number number = Number::kFloat;
  std::int64_t rows = 0, d = 0;  // 1 or more
};

// Mean and sums of powers of deviations: out [4][d]. One pass over the data, O(rows d); `shift` [d]
// is anything near the data, a row of it for example. `partial` [BlocksOf][d] is scratch, and holds
// the moments less the shift in its first d places afterwards. The same for the same data, shift
// and `threads()` on every run: nothing is added in an order that is not fixed.
absl::Status Sum(const Kernels& kernels, void* stream, const Rows& rows, const double* shift,
                 Moments* partial, double* out);

}  // namespace mergeplan::latents_device
