#pragma once

#include <cstdint>

#include "planner/base/host_device.h"

// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (SC 2011): four 32-bit words that look random for every counter of
// 128 bits, under a key of 64. Nothing is carried from one counter to the next, so any piece of a
// stream can be had at any time, on the processor and on a device alike. C++17, as device code is.
namespace mergeplan {

struct PhiloxWords {
  std::uint32_t w[4];
};
struct PhiloxKey {
  std::uint32_t k[2];
};

constexpr int kPhiloxRounds = 10;
constexpr std::uint32_t kPhiloxMultiply0 = 0xD2511F53, kPhiloxMultiply1 = 0xCD9E8D57;
constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9, kPhiloxWeyl1 = 0xBB67AE85;

MERGEPLAN_HOST_DEVICE PhiloxWords Philox(PhiloxWords counter, PhiloxKey key) {
  PhiloxWords c = counter;
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t p0 = static_cast<std::uint64_t>(kPhiloxMultiply0) * c.w[0];
    const std::uint64_t p1 = static_cast<std::uint64_t>(kPhiloxMultiply1) * c.w[2];
    c = {{static_cast<std::uint32_t>(p1 >> 32) ^ c.w[1] ^ key.k[0], static_cast<std::uint32_t>(p1),
          static_cast<std::uint32_t>(p0 >> 32) ^ c.w[3] ^ key.k[1],
          static_cast<std::uint32_t>(p0)}};
    key.k[0] += kPhiloxWeyl0;
    key.k[1] += kPhiloxWeyl1;
  }
  return c;
}

}  // namespace mergeplan
