#pragma once

#include <cstdint>

#include "adapters/noise/normal.h"
#include "planner/base/philox.h"

namespace mergeplan {

// Which stream: a key and the upper half of the counter, 128 bits of hash of all of (seed, first,
// last, lane). For one lane the hash is a bijection, so that different seeds and merges never share
// a stream; different lanes do with a probability of 2^-128.
struct StreamName {
  PhiloxKey key;
  std::uint32_t counter[2];

  static StreamName Of(std::uint64_t seed, int first, int last, int lane);
  // The four words of one counter of this stream, 64 bits.
  MERGEPLAN_HOST_DEVICE PhiloxWords Words(std::uint64_t index) const {
    return Philox({{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                    counter[0], counter[1]}},
                  key);
  }
};

// The number at one place of a NoiseStream, by itself: for devices, where one thread makes one.
// Three in four numbers of a block are thrown away, so FillAt is quicker where many are wanted.
MERGEPLAN_HOST_DEVICE float NormalAt(const StreamName& name, std::uint64_t position) {
  const auto place = static_cast<unsigned>(position % 32);
  const PhiloxWords block = name.Words(position / 32 * 8 + place % 8);
  const unsigned half = place / 16;
  float first, second;
  NormalPair(block.w[2 * half], block.w[2 * half + 1], &first, &second);
  return place / 8 % 2 == 0 ? first : second;
}

// A stream of standard normal numbers (float32, |z| <= kLargestNormal) for one lane of one merge.
// The number at every position is fixed by the stream's name alone (normal.h says how it is made),
// so the numbers do not depend on how they are asked for, on threads, or on the processor.
//
// Group g of 32 numbers is made of the eight blocks 8 g .. 8 g + 7 of four words each, l = 0..7:
// the first two words of block 8 g + l give the numbers 32 g + l and 32 g + 8 + l, the other two
// the numbers 32 g + 16 + l and 32 g + 24 + l.
class NoiseStream {
 public:
  NoiseStream(std::uint64_t seed, int first, int last, int lane)
      : NoiseStream(StreamName::Of(seed, first, last, lane)) {}
  explicit NoiseStream(const StreamName& name) : name_(name) {}

  // Writes the numbers position .. position + count - 1. Any thread. About 1.5 ns a number where
  // the processor has AVX2, quickest where both ends are multiples of 32.
  void FillAt(std::uint64_t position, float* out, std::int64_t count) const;
  // The next `count` numbers.
  void Fill(float* out, std::int64_t count) {
    FillAt(position_, out, count);
    position_ += static_cast<std::uint64_t>(count);
  }

  // All that there is of a state.
  std::uint64_t position() const { return position_; }
  void Seek(std::uint64_t position) { position_ = position; }

 private:
  StreamName name_;
  std::uint64_t position_ = 0;
};

// Whole groups of 32 numbers, by the eight-lane loop for AVX2 (false where the processor has none)
// and by the plain one; both give the same bits. FillAt takes the first that there is.
constexpr std::int64_t kNoiseGroup = 32;
bool FillGroupsAvx2(const StreamName& name, std::uint64_t first, std::int64_t groups, float* out);
void FillGroupsPlain(const StreamName& name, std::uint64_t first, std::int64_t groups, float* out);

}  // namespace mergeplan
