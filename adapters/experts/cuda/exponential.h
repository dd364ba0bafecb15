#pragma once

#include <cstdint>
#include <cstring>

#include "planner/mixture/elements.h"

// e^x for x <= 0 in the student's own numbers, for threads of a device: as kernel.cc has it for
// registers, within 2 units in the last place; 0 where the result would leave the normal numbers,
// NaN stays NaN.
namespace mergeplan::experts_device {

MERGEPLAN_HOST_DEVICE double ExpOfNegative(double x) { return mixture::ExpOfNegative(x); }

MERGEPLAN_HOST_DEVICE float ExpOfNegative(float x) {
  const float shifted = x * 1.44269504F + 12582912.0F;  // adding 1.5 * 2^23 rounds
  const float n = shifted - 12582912.0F;
  const float f = (x - n * 0.693145752F) - n * 1.42860677e-06F;
  float p = f * 1.38888889e-3F + 8.33333333e-3F;  // 1/6!, 1/5!
  p = p * f + 4.16666667e-2F;
  p = p * f + 1.66666667e-1F;
  p = p * f + 0.5F;
  p = p * f * f + f;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits + 127) << 23;
  float power = 0;
  std::memcpy(&power, &bits, sizeof(power));
  const float result = power + power * p;
  return x < -87.0F ? 0.0F : result;
}

}  // namespace mergeplan::experts_device
