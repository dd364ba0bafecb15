#include <algorithm>

#include "planner/device/blocks.h"
#include "planner/device/host_memory.h"
#include "planner/search/cuda/backend.h"

namespace mergeplan::search::device {
namespace {

using mergeplan::device::Blocks;

class EmulationBackend : public mergeplan::device::HostMemory<Backend> {
 public:
  absl::Status Run(const TileArgs& q) override {
    Blocks(TiledSize(q.n, q.entries), [&](std::size_t at) { TileThread(q, at); });
    return absl::OkStatus();
  }
  absl::Status Run(const UntileArgs& q) override {
    Blocks(TiledSize(q.n, q.entries), [&](std::size_t at) { UntileThread(q, at); });
    return absl::OkStatus();
  }
  absl::Status Run(const PairArgs& q) override {
    Blocks(static_cast<std::size_t>(q.end - q.begin), [&](std::size_t at) {
      double bound;
      if (PairThread(q, q.begin + at, &bound)) q.found[(*q.count)++] = {bound, q.begin + at};
    });
    return absl::OkStatus();
  }
  absl::Status Run(const ValueArgs& q) override {
    Blocks(TiledSize(q.n, q.count), [&](std::size_t at) { ValueThread(q, at); });
    return absl::OkStatus();
  }
  absl::Status Run(const CoveredArgs& q) override {
    Blocks(CoveredThreads(q), [&](std::size_t at) {
      std::uint32_t& covered = q.covered[at % q.batch_count];
      covered = std::max(covered, CoveredThread(q, at));
    });
    return absl::OkStatus();
  }
  absl::Status Run(const AmongArgs& q) override {
    Blocks(q.count * q.count, [&](std::size_t at) { AmongThread(q, at); });
    return absl::OkStatus();
  }
  absl::Status Run(const AppendArgs& q) override {
    Blocks(q.count * q.n, [&](std::size_t at) { AppendThread(q, at); });
    return absl::OkStatus();
  }
  absl::Status Run(const SlackArgs& q) override {
    Blocks(q.most, [&](std::size_t at) { LossThread(q, at); });
    Least least[kThreads];
    for (unsigned thread = kThreads; thread-- > 0;) least[thread] = DecideShare(q, thread);
    for (unsigned half = kThreads / 2; half > 0; half /= 2) {
      for (unsigned thread = half; thread-- > 0;)
        least[thread] = LeastOf(least[thread], least[thread + half]);
    }
    for (unsigned thread = kThreads; thread-- > 0;) DecideColumns(q, least[0], thread);
    DecideLast(q, least[0]);
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Backend> Emulation() { return std::make_unique<EmulationBackend>(); }

}  // namespace mergeplan::search::device
