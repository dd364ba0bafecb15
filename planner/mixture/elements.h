#pragma once

#include <cstdint>
#include <cstring>

#include "planner/base/host_device.h"

// What one number of one row of a mixture step goes through: the functions that the processor's
// loops (kernels.cc) are made of and that a device's kernels can include. Compiled without
// contraction on both sides (-ffp-contract=off, -fmad=false) they give the same digits.
namespace mergeplan::mixture {

// e^x for x <= 0, within 2 units in the last place; 0 below -708, where the result would leave the
// normal numbers. NaN stays NaN. Made of plain arithmetic, so that loops over it are vectorised.
MERGEPLAN_HOST_DEVICE double ExpOfNegative(double x) {
  // n = x / ln 2, rounded: adding 1.5 * 2^52 leaves it in the low bits of `shifted`.
  const double shifted = x * 1.4426950408889634 + 6755399441055744.0;
  const double n = shifted - 6755399441055744.0;
  // x - n ln 2 in two pieces, the first of which has zeros enough at its end to be exact.
  const double f = (x - n * 0.69314718036912381649) - n * 1.9082149292705877e-10;
  double p = 1.6059043836821613e-10;  // 1/13!
  p = p * f + 2.08767569878681e-09;
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
  std::uint64_t bits = 0;
  std::memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits + 1023) << 52;
  double power = 0;
  std::memcpy(&power, &bits, sizeof(power));
  const double result = power + power * p;
  return x < -708.0 ? 0.0 : result;
}

// What a component adds to the step at a coordinate, `local` being the deviation from its centre.
MERGEPLAN_HOST_DEVICE double Expert(double target, double gain, double local) {
  return target + gain * local;
}
// The same with a low-rank part: `pulled` is what that part explains of the deviation `local`.
MERGEPLAN_HOST_DEVICE double LowRankExpert(double target, double gain, double cross, double alpha2,
                                           double local, double pulled) {
  return target + (gain * (local - alpha2 * pulled) + cross * pulled);
}

// A coordinate's share in a component's squared distance.
MERGEPLAN_HOST_DEVICE double Distance(double inverse_variance, double local) {
  return inverse_variance * (local * local);
}

// What a component adds to the derivative of the step: its own map of the direction, and its
// weight's change times where it leads. `change` is how much faster than the mean of all components
// the squared distance grows along the direction (half of its derivative).
MERGEPLAN_HOST_DEVICE double Change(double weight, double mapped, double change, double expert) {
  return weight * (mapped - change * expert);
}

}  // namespace mergeplan::mixture
