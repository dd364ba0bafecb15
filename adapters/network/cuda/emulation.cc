#include <memory>

#include "adapters/network/cuda/kernels.h"
#include "planner/device/blocks.h"

namespace mergeplan::network_device {
namespace {

// body(at) for every thread, as a number that counts from 0.
template <class Body>
absl::Status Threads(std::int64_t threads, const Body& body) {
  device::Blocks(static_cast<std::size_t>(threads),
                 [&](std::size_t at) { body(static_cast<std::int64_t>(at)); });
  return absl::OkStatus();
}

class OfHost : public Kernels {
 public:
  absl::Status Run(void*, const LandArgs& q) const override {
    return device::WithType(q.number, [&](auto type) {
      return Threads(q.numbers, [&](std::int64_t at) { LandThread<decltype(type)>(q, at); });
    });
  }
  absl::Status Run(void*, const PullArgs& q) const override {
    return device::WithType(q.number, [&](auto type) {
      return Threads(q.numbers, [&](std::int64_t at) { PullThread<decltype(type)>(q, at); });
    });
  }
  absl::Status Run(void*, const AverageArgs& q) const override {
    return Threads(q.pieces * kThreads, [&](std::int64_t at) {
      if (q.wide) {
        AverageThread<double>(q, at);
      } else {
        AverageThread<float>(q, at);
      }
    });
  }
};

}  // namespace

std::unique_ptr<Kernels> Emulation() { return std::make_unique<OfHost>(); }

}  // namespace mergeplan::network_device
