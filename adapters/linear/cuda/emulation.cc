#include "adapters/linear/cuda/backend.h"
#include "planner/device/blocks.h"
#include "planner/device/host_memory.h"

namespace mergeplan::linear_device {
namespace {

class EmulationBackend : public device::HostMemory<Backend> {
 public:
  absl::Status Use() override { return absl::OkStatus(); }
  absl::Status Run(const SliceArgs& q) override {
    device::Blocks(static_cast<std::size_t>(q.merges * q.count * q.slices * q.d),
                   [&](std::size_t at) { SliceThread(q, static_cast<std::int64_t>(at)); });
    return absl::OkStatus();
  }
  absl::Status Run(const SumArgs& q) override {
    device::Blocks(static_cast<std::size_t>(q.sums_count),
                   [&](std::size_t at) { SumThread(q, static_cast<std::int64_t>(at)); });
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Backend> Emulation() { return std::make_unique<EmulationBackend>(); }

}  // namespace mergeplan::linear_device
