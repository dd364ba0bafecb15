#include "adapters/encoding/place.h"

#include <malloc.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "adapters/runtime/arguments.h"
#include "adapters/runtime/device.h"

namespace mergeplan::encoding {

absl::StatusOr<at::Device> OpenPlace(const std::string& word, int threads) {
  const absl::StatusOr<Device> device = OpenDevice(word);
  if (!device.ok()) {
    const std::string text = absl::StrCat("--", std::string(device.status().message()));
    return absl::IsInvalidArgument(device.status()) ? Misuse(text)
                                                    : absl::Status(device.status().code(), text);
  }
  SetThreads(threads);
  return device->cuda ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device->index))
                      : at::Device(at::kCPU);
}

void KeepFreedMemory() {
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  ::mallopt(M_TOP_PAD, 1 << 26);
}

}  // namespace mergeplan::encoding
