#include <memory>

#include "adapters/network/cuda/kernels.h"
#include "planner/device/emulate.h"

namespace mergeplan::network_device {
namespace {

using device::Emulate;

class OfHost : public Kernels {
 public:
  absl::Status Run(void*, const LandArgs& q) const override {
    return device::WithType(q.number, [&](auto type) {
      return Emulate(q.numbers, [&](std::int64_t at) { LandThread<decltype(type)>(q, at); });
    });
  }
  absl::Status Run(void*, const PullArgs& q) const override {
    return device::WithType(q.number, [&](auto type) {
      return Emulate(q.numbers, [&](std::int64_t at) { PullThread<decltype(type)>(q, at); });
    });
  }
  absl::Status Run(void*, const AverageArgs& q) const override {
    return Emulate(q.pieces * kThreads, [&](std::int64_t at) {
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
