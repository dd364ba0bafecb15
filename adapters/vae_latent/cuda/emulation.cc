#include <memory>

#include "adapters/vae_latent/cuda/kernels.h"
#include "planner/device/emulate.h"

namespace mergeplan::latents_device {
namespace {

using device::Emulate;

class OfHost : public Kernels {
 public:
  explicit OfHost(std::int64_t threads) : threads_(threads) {}
  absl::Status Run(void*, const SumArgs& q) const override {
    return device::WithType(q.number, [&](auto type) {
      return Emulate(q.blocks * q.d, [&](std::int64_t at) { SumThread<decltype(type)>(q, at); });
    });
  }
  absl::Status Run(void*, const JoinArgs& q) const override {
    return Emulate(Pairs(q) * q.d, [&](std::int64_t at) { JoinThread(q, at); });
  }
  absl::Status Run(void*, const FinishArgs& q) const override {
    return Emulate(q.d, [&](std::int64_t at) { FinishThread(q, at); });
  }
  absl::Status Run(void*, const CentreArgs& q) const override {
    return device::WithType(q.number, [&](auto type) {
      return Emulate(q.numbers, [&](std::int64_t at) { CentreThread<decltype(type)>(q, at); });
    });
  }
  std::int64_t threads() const override { return threads_; }

 private:
  std::int64_t threads_;
};

}  // namespace

std::unique_ptr<Kernels> Emulation(std::int64_t threads) {
  return std::make_unique<OfHost>(threads);
}

}  // namespace mergeplan::latents_device
