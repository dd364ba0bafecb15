#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace mergeplan {

// A stream of standard normal numbers of its own for one lane of one merge, from LibTorch's CPU
// generator (mt19937 and Box-Muller, float32). Two streams with different names (seed, first, last,
// lane) share nothing; the same name always gives the same numbers, whatever else is drawn.
//
// The numbers depend on how they are asked for: Fill(out, 32) is not Fill(out, 16) twice. Callers
// therefore draw in pieces of fixed sizes.
class NoiseStream {
 public:
  NoiseStream(std::uint64_t seed, int first, int last, int lane);
  ~NoiseStream();
  NoiseStream(NoiseStream&&) noexcept;
  NoiseStream& operator=(NoiseStream&&) noexcept;

  // Writes `count` normal numbers. May run at the same time as Fill of other streams.
  void Fill(float* out, std::int64_t count);

  // The generator's state, and the same put back. DATA_LOSS for bytes that are no such state.
  std::vector<std::uint8_t> Save() const;
  absl::Status Restore(absl::Span<const std::uint8_t> state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mergeplan
