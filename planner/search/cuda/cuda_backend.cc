#include "absl/strings/str_cat.h"
#include "planner/search/cuda/backend.h"
#include "planner/search/cuda/launch.h"

namespace mergeplan::search::device {
namespace {

constexpr int kOutOfMemory = 2;  // cudaErrorMemoryAllocation

absl::Status ToStatus(int error, const char* what) {
  if (error == 0) return absl::OkStatus();
  const std::string text =
      absl::StrCat("CUDA error ", error, " (", cuda::ErrorText(error), ") in ", what);
  return error == kOutOfMemory ? absl::ResourceExhaustedError(text) : absl::UnavailableError(text);
}

class CudaBackend : public Backend {
 public:
  CudaBackend(std::string name, void* stream) : name_(std::move(name)), stream_(stream) {}
  ~CudaBackend() override { cuda::Close(stream_); }

  std::string name() const override { return name_; }

  absl::StatusOr<void*> Allocate(std::size_t bytes) override {
    void* memory = nullptr;
    if (absl::Status status = ToStatus(cuda::Allocate(bytes, &memory), "allocation"); !status.ok())
      return status;
    return memory;
  }
  void Release(void* memory) override { cuda::Release(memory); }
  absl::Status Upload(void* to, const void* from, std::size_t bytes) override {
    return ToStatus(cuda::Upload(stream_, to, from, bytes), "a copy to the device");
  }
  absl::Status Download(void* to, const void* from, std::size_t bytes) override {
    return ToStatus(cuda::Download(stream_, to, from, bytes), "a copy from the device");
  }
  absl::Status Copy(void* to, const void* from, std::size_t bytes) override {
    return ToStatus(cuda::Copy(stream_, to, from, bytes), "a copy on the device");
  }
  absl::Status Zero(void* to, std::size_t bytes) override {
    return ToStatus(cuda::Zero(stream_, to, bytes), "setting memory to zero");
  }

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
    return ToStatus(cuda::Run(stream_, args), what);
  }

  std::string name_;
  void* stream_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> OpenCuda() {
  char name[320] = "";
  void* stream = nullptr;
  if (const int error = cuda::Open(name, sizeof name, &stream); error != 0) {
    return absl::UnavailableError(
        absl::StrCat("no CUDA device: ", cuda::ErrorText(error), " (CUDA error ", error, ")"));
  }
  return std::make_unique<CudaBackend>(name, stream);
}

}  // namespace mergeplan::search::device
