#pragma once

#include <cstdint>

#include "adapters/noise/noise.h"

namespace mergeplan {

// Random numbers with the chi-squared law: the sum of the squares of `count` independent standard
// normal numbers, drawn at once. The draw at every index (below 2^48) is fixed by the stream's
// name.
//
// Gamma(count / 2) by Marsaglia and Tsang, "A simple method for generating gamma variables" (ACM
// TOMS 26, 2000), from counters of Philox; one number is a square itself. Float64; logarithm and
// cosine are our own, so that the digits depend on no library. The normal number inside has 53
// random bits for its radius and 32 for its angle, the rejection 32: that is how exact the law is.
// About 60 ns a draw.
class ChiSquaredStream {
 public:
  // count >= 1.
  ChiSquaredStream(const StreamName& name, std::int64_t count);

  double At(std::uint64_t index) const;

 private:
  StreamName name_;
  bool single_;
  double d_, c_;  // of Marsaglia and Tsang
};

// log x for normal, positive x, within 2 units in the last place.
double PortableLog(double x);
// cos of word / 2^32 turns, within 2e-16.
double PortableCosine(std::uint32_t word);

}  // namespace mergeplan
