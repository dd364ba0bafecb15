#pragma once

#include <cstdint>
#include <cstring>

#include "planner/base/host_device.h"

// The numbers that kernels read and write besides float and double. Narrow rounds to the nearest,
// ties to even, as processors and devices do; a NaN stays one. C++17, for nvcc too.
namespace mergeplan::device {

enum class Number : int { kFloat, kDouble, kHalf, kBfloat };

struct Half {
  std::uint16_t bits;
};
struct Bfloat {
  std::uint16_t bits;
};

MERGEPLAN_HOST_DEVICE std::uint32_t BitsOf(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
MERGEPLAN_HOST_DEVICE float FloatOf(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

MERGEPLAN_HOST_DEVICE float Widen(float x) { return x; }
MERGEPLAN_HOST_DEVICE double Widen(double x) { return x; }
MERGEPLAN_HOST_DEVICE float Widen(Bfloat x) {
  return FloatOf(static_cast<std::uint32_t>(x.bits) << 16);
}
MERGEPLAN_HOST_DEVICE float Widen(Half x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (x.bits >> 10) & 31, fraction = x.bits & 1023;
  if (exponent == 0) {  // below 2^-14, in steps of 2^-24
    return FloatOf(sign | BitsOf(static_cast<float>(fraction) * 0x1p-24f));
  }
  return FloatOf(sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13);
}

MERGEPLAN_HOST_DEVICE void Narrow(double x, double* out) { *out = x; }
MERGEPLAN_HOST_DEVICE void Narrow(float x, float* out) { *out = x; }
MERGEPLAN_HOST_DEVICE void Narrow(float x, Bfloat* out) {
  const std::uint32_t bits = BitsOf(x);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  // Half of the last place kept, less one where that place is even.
  const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  out->bits = static_cast<std::uint16_t>(nan ? bits >> 16 | 0x40u : rounded >> 16);
}
MERGEPLAN_HOST_DEVICE void Narrow(float x, Half* out) {
  const std::uint32_t bits = BitsOf(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  std::uint32_t half;
  if (size > 0x7f800000u) {
    half = 0x7e00u;  // a NaN
  } else if (size >= 0x477ff000u) {
    half = 0x7c00u;  // 65520 and more are infinite
  } else if (size < 0x38800000u) {
    // Below 2^-14. Added to 0.5, whose last place is 2^-24, the number is rounded by the sum.
    half = BitsOf(FloatOf(size) + 0.5f) - BitsOf(0.5f);
  } else {
    half = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
  }
  out->bits = static_cast<std::uint16_t>(sign | half);
}
// Calls body(X{}) with the type behind the name.
template <class Body>
auto WithType(Number number, const Body& body) {
  switch (number) {
    case Number::kDouble:
      return body(double{});
    case Number::kHalf:
      return body(Half{});
    case Number::kBfloat:
      return body(Bfloat{});
    case Number::kFloat:
      break;
  }
  return body(float{});
}

}  // namespace mergeplan::device
