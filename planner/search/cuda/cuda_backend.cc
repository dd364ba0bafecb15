#include "planner/base/status_macros.h"
#include "planner/device/cuda_memory.h"
#include "planner/search/cuda/backend.h"
#include "planner/search/cuda/launch.h"

namespace mergeplan::search::device {
namespace {

class CudaBackend : public mergeplan::device::CudaMemory<Backend> {
 public:
  using CudaMemory::CudaMemory;

  absl::Status Run(const TileArgs& args) override { return Launch(args, "tiling"); }
  absl::Status Run(const UntileArgs& args) override { return Launch(args, "untiling"); }
  absl::Status Run(const PairArgs& args) override { return Launch(args, "the bounds of pairs"); }
  absl::Status Run(const ValueArgs& args) override { return Launch(args, "values"); }
  absl::Status Run(const CoveredArgs& args) override { return Launch(args, "dominance"); }
  absl::Status Run(const AmongArgs& args) override { return Launch(args, "dominance in a batch"); }
  absl::Status Run(const AppendArgs& args) override { return Launch(args, "keeping entries"); }
  absl::Status Run(const SlackArgs& args) override { return Launch(args, "dominance with slack"); }

 private:
  template <class Args>
  absl::Status Launch(const Args& args, const char* what) {
    return mergeplan::device::CudaStatus(cuda::Run(stream(), args), what);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> OpenCuda() {
  MP_ASSIGN_OR_RETURN(mergeplan::device::CudaStream opened, mergeplan::device::OpenCudaStream(0));
  return std::make_unique<CudaBackend>(std::move(opened));
}

}  // namespace mergeplan::search::device
