#pragma once

#include <cstdlib>
#include <cstring>
#include <string>

#include "planner/device/memory.h"

namespace mergeplan::device {

// The processor's memory behind `Interface`, a class derived from Memory.
template <class Interface>
class HostMemory : public Interface {
 public:
  std::string name() const override { return "emulation"; }

  absl::StatusOr<void*> Allocate(std::size_t bytes) override {
    void* memory = std::malloc(bytes == 0 ? 1 : bytes);
    if (memory == nullptr) return absl::ResourceExhaustedError("out of memory");
    return memory;
  }
  void Release(void* memory) override { std::free(memory); }
  absl::Status Upload(void* to, const void* from, std::size_t bytes) override {
    return Copy(to, from, bytes);
  }
  absl::Status Download(void* to, const void* from, std::size_t bytes) override {
    return Copy(to, from, bytes);
  }
  absl::Status Copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  absl::Status Zero(void* to, std::size_t bytes) override {
    if (bytes > 0) std::memset(to, 0, bytes);
    return absl::OkStatus();
  }
};

}  // namespace mergeplan::device
