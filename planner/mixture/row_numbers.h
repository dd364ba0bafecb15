#pragma once

#include <cmath>
#include <cstdint>

#include "planner/base/philox.h"

// C++17, as device code is.
namespace mergeplan::mixture {

// In (0, 1): the middle of one of 2^52 equal pieces.
MERGEPLAN_HOST_DEVICE double Uniform(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 12;
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

// The random numbers of one row of a stream, in order: Philox, counted by the row.
class RowNumbers {
 public:
  MERGEPLAN_HOST_DEVICE RowNumbers(std::uint64_t seed, std::uint32_t stream, std::uint64_t row)
      : key_{{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}},
        counter_{
            {0, static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(row >> 32), stream}} {}

  // Takes a block for itself.
  MERGEPLAN_HOST_DEVICE double NextUniform() {
    have_spare_ = false;
    const PhiloxWords block = Next();
    return Uniform(block.w[0], block.w[1]);
  }
  MERGEPLAN_HOST_DEVICE double NextNormal() {
    if (have_spare_) {
      have_spare_ = false;
      return spare_;
    }
    const PhiloxWords block = Next();
    const double radius = std::sqrt(-2 * std::log(Uniform(block.w[0], block.w[1])));
    const double angle = 2 * 3.141592653589793 * Uniform(block.w[2], block.w[3]);
    spare_ = radius * std::sin(angle);
    have_spare_ = true;
    return radius * std::cos(angle);
  }

 private:
  MERGEPLAN_HOST_DEVICE PhiloxWords Next() {
    const PhiloxWords block = Philox(counter_, key_);
    ++counter_.w[0];
    return block;
  }

  PhiloxKey key_;
  PhiloxWords counter_;
  double spare_ = 0;
  bool have_spare_ = false;
};

}  // namespace mergeplan::mixture
