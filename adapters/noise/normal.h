#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "planner/base/philox.h"

// Box-Muller in float32: two independent standard normal numbers from two random words. Only
// additions, multiplications and square roots, which are rounded alike everywhere, and no function
// of a library: compiled without contraction (-ffp-contract=off, -fmad=false) the digits are the
// same on every processor and device, and however the compiler vectorises. C++17, as device code
// is.
namespace mergeplan {

// No normal number of ours is larger than this: the radius of the least uniform number, 2^-33, is
// sqrt(66 log 2). A true one is beyond it with a probability of 1.4e-11.
constexpr float kLargestNormal = 6.7638F;

MERGEPLAN_HOST_DEVICE float FloatOfBits(std::uint32_t bits) {
  float out;
  std::memcpy(&out, &bits, sizeof(out));
  return out;
}
MERGEPLAN_HOST_DEVICE std::uint32_t BitsOfFloat(float value) {
  std::uint32_t out;
  std::memcpy(&out, &value, sizeof(out));
  return out;
}

// log u for 0 < u <= 1, within 1e-7 relative: u = 2^e (1 + f), f in [sqrt(1/2) - 1, sqrt(2) - 1],
// log(1 + f) = f - f^2/2 + f^3 P(f), P a minimax polynomial.
MERGEPLAN_HOST_DEVICE float LogOfUniform(float u) {
  constexpr std::uint32_t kRootHalf = 0x3F3504F3;  // bits of sqrt(1/2)
  const std::uint32_t shifted = BitsOfFloat(u) - kRootHalf;
  const float e = static_cast<float>(static_cast<std::int32_t>(shifted) >> 23);
  const float f = FloatOfBits((shifted & 0x007FFFFF) + kRootHalf) - 1.0F;
  float p = -0.07634429633617401F;
  p = p * f + 0.12761549651622772F;
  p = p * f + -0.131601944565773F;
  p = p * f + 0.14201761782169342F;
  p = p * f + -0.16623356938362122F;
  p = p * f + 0.20001226663589478F;
  p = p * f + -0.250008225440979F;
  p = p * f + 0.3333333134651184F;
  const float f2 = f * f;
  return e * 0.6931471805599453F + (f + f2 * (f * p - 0.5F));
}

// The radius, from all 32 bits of its word: u = (word + 1/2) 2^-32 lies in (0, 1], and is rounded
// relative to its size, so that the far tail is as fine as the middle.
MERGEPLAN_HOST_DEVICE float Radius(std::uint32_t word) {
  const float u = static_cast<float>(word) * 0x1p-32F + 0x1p-33F;
#if defined(__CUDACC__)
  return sqrtf(-2.0F * LogOfUniform(u));
#else
  return __builtin_sqrtf(-2.0F * LogOfUniform(u));
#endif
}

// Cosine and sine of word / 2^32 turns: a quarter of a turn by integers, the rest, t in [-1/2, 1/2)
// quarters, by polynomials of t^2.
MERGEPLAN_HOST_DEVICE void CosineSine(std::uint32_t word, float* cosine, float* sine) {
  const std::uint32_t turned = word + 0x20000000U;
  const std::uint32_t quarter = turned >> 30;
  const float t =
      static_cast<float>(static_cast<std::int32_t>(turned & 0x3FFFFFFF) - 0x20000000) * 0x1p-30F;
  const float y = t * t;
  const float s =
      t * (1.5707963705062866F +
           y * (-0.6459634900093079F + y * (0.07968022674322128F + y * -0.0046021770685911179F)));
  const float c =
      1.0F +
      y * (-1.2337005138397217F +
           y * (0.25366920232772827F + y * (-0.02086007222533226F + y * 0.00090363173512741923F)));
  const std::uint32_t swap = 0U - (quarter & 1U);
  const std::uint32_t s_bits = BitsOfFloat(s), c_bits = BitsOfFloat(c);
  const std::uint32_t differ = (s_bits ^ c_bits) & swap;
  *cosine = FloatOfBits((c_bits ^ differ) ^ (((quarter + 1U) & 2U) << 30));
  *sine = FloatOfBits((s_bits ^ differ) ^ ((quarter & 2U) << 30));
}

MERGEPLAN_HOST_DEVICE void NormalPair(std::uint32_t radius_word, std::uint32_t angle_word,
                                      float* first, float* second) {
  const float radius = Radius(radius_word);
  float cosine, sine;
  CosineSine(angle_word, &cosine, &sine);
  *first = radius * cosine;
  *second = radius * sine;
}

}  // namespace mergeplan
