#include "adapters/runtime/device.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "adapters/parallel/open.h"

namespace mergeplan {

std::string Device::ToString() const { return cuda ? absl::StrCat("cuda:", index) : "cpu"; }

absl::StatusOr<Device> OpenDevice(const std::string& word) {
  if (word == "cpu") return Device{};
  absl::string_view rest = word;
  int index = -1;  // not said
  if (!absl::ConsumePrefix(&rest, "cuda") ||
      !(rest.empty() ||
        (absl::ConsumePrefix(&rest, ":") && absl::SimpleAtoi(rest, &index) && index >= 0))) {
    return absl::InvalidArgumentError(
        absl::StrCat("device '", word, "': expected cpu, cuda or cuda:N"));
  }
  // Its static initialisers register the CUDA kernels; it stays open for the life of the process.
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    const char* reason = dlerror();
    return absl::UnavailableError(
        absl::StrCat("device '", word, "': this LibTorch has no CUDA library (",
                     reason != nullptr ? reason : "unknown reason", "); use --device cpu"));
  }
  try {
    const int count = at::detail::getCUDAHooks().getNumGPUs();
    if (count == 0) {
      return absl::UnavailableError(
          absl::StrCat("device '", word, "': no CUDA device was found; use --device cpu"));
    }
    if (index < 0) index = RankOnThisMachine() % count;
    if (index >= count) {
      return absl::UnavailableError(absl::StrCat("device '", word, "': this machine has ", count,
                                                 " CUDA device(s), numbered from 0"));
    }
    at::globalContext().lazyInitDevice(at::kCUDA);
  } catch (const c10::Error& error) {
    return absl::UnavailableError(
        absl::StrCat("device '", word, "': ", error.what_without_backtrace()));
  }
  return Device{true, index};
}

int SetThreads(int threads) {
  if (threads <= 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  if (threads <= 0) threads = 1;
  at::set_num_threads(threads);
  return threads;
}

std::string TorchVersion() {
  return absl::StrCat(TORCH_VERSION_MAJOR, ".", TORCH_VERSION_MINOR, ".", TORCH_VERSION_PATCH);
}

}  // namespace mergeplan
