#include <memory>

#include "adapters/vae_latent/cuda/kernels.h"
#include "planner/device/blocks.h"

namespace mergeplan::latents_device {
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
  explicit OfHost(std::int64_t threads) : threads_(threads) {}
  absl::Status Run(void*, const SumArgs& q) const override {
    return device::WithType(q.number, [&](auto type) {
      return Threads(q.blocks * q.d, [&](std::int64_t at) { SumThread<decltype(type)>(q, at); });
    });
  }
  absl::Status Run(void*, const JoinArgs& q) const override {
    return Threads(Pairs(q) * q.d, [&](std::int64_t at) { JoinThread(q, at); });
  }
  absl::Status Run(void*, const FinishArgs& q) const override {
    return Threads(q.d, [&](std::int64_t at) { FinishThread(q, at); });
  }
  absl::Status Run(void*, const CentreArgs& q) const override {
    return device::WithType(q.number, [&](auto type) {
      return Threads(q.numbers, [&](std::int64_t at) { CentreThread<decltype(type)>(q, at); });
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
