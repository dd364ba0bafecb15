#include <utility>

#include "adapters/experts/cuda/backend.h"
#include "adapters/experts/cuda/launch.h"
#include "planner/base/status_macros.h"
#include "planner/device/cuda_memory.h"

namespace mergeplan::experts_device {
namespace {

class CudaBackend : public device::CudaMemory<Backend> {
 public:
  CudaBackend(device::CudaStream opened, int index)
      : CudaMemory(std::move(opened)), index_(index) {}
  ~CudaBackend() override {
    if (graph_ != nullptr) device::cuda::DropGraph(graph_);
  }

  absl::Status Use() override {
    return device::CudaStatus(device::cuda::Use(index_), "the choice of the device");
  }
  absl::Status Run(Work work, const Training<float>& training) override {
    return device::CudaStatus(cuda::Run(stream(), work, training), "an update of students");
  }
  absl::Status Run(Work work, const Training<double>& training) override {
    return device::CudaStatus(cuda::Run(stream(), work, training), "an update of students");
  }
  absl::Status Record(const std::function<absl::Status()>& launches) override {
    MP_RETURN_IF_ERROR(
        device::CudaStatus(device::cuda::BeginRecord(stream()), "the recording of an update"));
    const absl::Status launched = launches();
    const absl::Status ended =
        device::CudaStatus(device::cuda::EndRecord(stream(), &graph_), "the graph of an update");
    return launched.ok() ? ended : launched;
  }
  absl::Status Replay() override {
    return device::CudaStatus(device::cuda::Replay(stream(), graph_), "a recorded update");
  }
  BlockMemory memory() const override { return {}; }

 private:
  int index_;
  void* graph_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> OpenCuda(int index) {
  MP_ASSIGN_OR_RETURN(device::CudaStream opened, device::OpenCudaStream(index));
  return std::make_unique<CudaBackend>(std::move(opened), index);
}

}  // namespace mergeplan::experts_device
