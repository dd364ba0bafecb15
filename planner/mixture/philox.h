#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

// Philox 4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
// A function from a counter and a key to 128 random bits.
namespace mergeplan::mixture {

using PhiloxBlock = std::array<std::uint32_t, 4>;

inline PhiloxBlock Philox(PhiloxBlock counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t right = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(right >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(right),
               static_cast<std::uint32_t>(left >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(left)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// In (0, 1): the middle of one of 2^52 equal pieces.
inline double Uniform(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 12;
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

// The random numbers of one row of a stream, in order.
class RowNumbers {
 public:
  RowNumbers(std::uint64_t seed, std::uint32_t stream, std::uint64_t row)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        counter_{0, static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(row >> 32),
                 stream} {}

  // Takes a block for itself.
  double NextUniform() {
    have_spare_ = false;
    const PhiloxBlock block = Next();
    return Uniform(block[0], block[1]);
  }
  double NextNormal() {
    if (have_spare_) {
      have_spare_ = false;
      return spare_;
    }
    const PhiloxBlock block = Next();
    const double radius = std::sqrt(-2 * std::log(Uniform(block[0], block[1])));
    const double angle = 2 * std::numbers::pi * Uniform(block[2], block[3]);
    spare_ = radius * std::sin(angle);
    have_spare_ = true;
    return radius * std::cos(angle);
  }

 private:
  PhiloxBlock Next() {
    const PhiloxBlock block = Philox(counter_, key_);
    ++counter_[0];
    return block;
  }

  std::array<std::uint32_t, 2> key_;
  PhiloxBlock counter_;
  double spare_ = 0;
  bool have_spare_ = false;
};

}  // namespace mergeplan::mixture
