#include <algorithm>
#include <limits>
#include <vector>

#include "adapters/experts/cuda/backend.h"
#include "adapters/experts/cuda/rows.h"
#include "adapters/experts/cuda/step.h"
#include "adapters/experts/cuda/update.h"
#include "planner/device/blocks.h"
#include "planner/device/host_memory.h"

namespace mergeplan::experts_device {
namespace {

// The blocks of kStep, the last one first. A phase is over before the next one starts, as
// __syncthreads has it on a device. What is left in a block's memory from the tile before is NaN.
template <typename T>
void StepBlocks(const Training<T>& q) {
  const Size numbers = StepNumbers(q.d, q.E, q.H);
  for (Size block = q.blocks; block-- > 0;) {
    std::vector<T> shared(q.block_memory == nullptr ? static_cast<std::size_t>(numbers) : 0);
    T* memory = q.block_memory == nullptr ? shared.data() : q.block_memory + block * numbers;
    for (Size at = block; at < q.tasks * q.parts; at += q.blocks) {
      for (Size tile = 0; tile < q.part_tiles; ++tile) {
        std::fill_n(memory, numbers, std::numeric_limits<T>::quiet_NaN());
        for (int phase = 0; phase < kStepPhases; ++phase) {
          for (Size thread = kThreads; thread-- > 0;) {
            StepPhase(q, at, tile, phase, thread, memory);
          }
        }
      }
    }
  }
}

template <typename T>
void RunAny(Work work, const Training<T>& q) {
  if (work == Work::kStep) return StepBlocks(q);
  device::Blocks(static_cast<std::size_t>(Threads(work, q)), [&](std::size_t thread) {
    const Size at = static_cast<Size>(thread);
    if (work == Work::kRows) {
      RowsThread(q, at);
    } else if (work == Work::kPool) {
      PoolThread(q, at);
    } else {
      UpdateWork(work, q, at);
    }
  });
}

class EmulationBackend : public device::HostMemory<Backend> {
 public:
  explicit EmulationBackend(const BlockMemory& memory) : memory_(memory) {}

  absl::Status Use() override { return absl::OkStatus(); }
  absl::Status Run(Work work, const Training<float>& training) override {
    RunAny(work, training);
    return absl::OkStatus();
  }
  absl::Status Run(Work work, const Training<double>& training) override {
    RunAny(work, training);
    return absl::OkStatus();
  }
  absl::Status Record(const std::function<absl::Status()>& launches) override {
    launches_ = launches;
    return absl::OkStatus();
  }
  absl::Status Replay() override { return launches_(); }
  BlockMemory memory() const override { return memory_; }

 private:
  const BlockMemory memory_;
  std::function<absl::Status()> launches_;
};

}  // namespace

std::unique_ptr<Backend> Emulation(const BlockMemory& memory) {
  return std::make_unique<EmulationBackend>(memory);
}

}  // namespace mergeplan::experts_device
