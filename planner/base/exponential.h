#pragma once

#include <cstdint>
#include <cstring>

#include "planner/base/host_device.h"

namespace mergeplan {

// e^x for x <= 0 in place, within 2 units in the last place: x = n ln 2 + f, |f| <= ln 2 / 2, and a
// Taylor polynomial. Exactly 0 where the result would leave the normal numbers, and for -infinity;
// NaN stays NaN. V is a number, or a register of them, W whole numbers of the same width.
template <typename V, typename W>
MERGEPLAN_HOST_DEVICE void ExpOfNegative(V& x, const float /*kind*/) {
  const V shifted = x * 1.44269504f + 12582912.0f;  // adding 1.5 * 2^23 rounds to a whole number
  const V n = shifted - 12582912.0f;
  const V f = (x - n * 0.693145752f) - n * 1.42860677e-06f;
  V p = f * 1.38888889e-3f + 8.33333333e-3f;  // 1/6!, 1/5!
  p = p * f + 4.16666667e-2f;
  p = p * f + 1.66666667e-1f;
  p = p * f + 0.5f;
  p = p * f * f + f;
  W bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits + 127) << 23;
  V power;
  std::memcpy(&power, &bits, sizeof(power));
  const V result = power + power * p;  // computed in any case: loops over it are vectorised
  x = x < -87.0f ? V{} : result;
}
template <typename V, typename W>
MERGEPLAN_HOST_DEVICE void ExpOfNegative(V& x, const double /*kind*/) {
  const V shifted = x * 1.4426950408889634 + 6755399441055744.0;  // 1.5 * 2^52
  const V n = shifted - 6755399441055744.0;
  const V f = (x - n * 0.69314718036912381649) - n * 1.9082149292705877e-10;
  V p = f * 1.6059043836821613e-10 + 2.08767569878681e-09;  // 1/13!, 1/12!
  p = p * f + 2.505210838544172e-08;
  p = p * f + 2.755731922398589e-07;
  p = p * f + 2.7557319223985893e-06;
  p = p * f + 2.48015873015873e-05;
  p = p * f + 0.0001984126984126984;
  p = p * f + 0.001388888888888889;
  p = p * f + 0.008333333333333333;
  p = p * f + 0.041666666666666664;
  p = p * f + 0.16666666666666666;
  p = p * f + 0.5;
  p = p * f * f + f;
  W bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits + 1023) << 52;
  V power;
  std::memcpy(&power, &bits, sizeof(power));
  const V result = power + power * p;
  x = x < -708.0 ? V{} : result;
}

MERGEPLAN_HOST_DEVICE float ExpOfNegative(float x) {
  ExpOfNegative<float, std::uint32_t>(x, 0.0f);
  return x;
}
MERGEPLAN_HOST_DEVICE double ExpOfNegative(double x) {
  ExpOfNegative<double, std::uint64_t>(x, 0.0);
  return x;
}

}  // namespace mergeplan
