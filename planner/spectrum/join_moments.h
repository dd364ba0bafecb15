#pragma once

#include <cstddef>

namespace mergeplan {

// Moments of `width` dimensions that grow: means relative to a shift, and sums of powers of the
// deviations from them.
struct GrowingMoments {
  double *mean, *m2, *m3, *m4;
};

// Joins some samples, the share fb of all then, to `before` others, the share fa, in dimension i,
// by the pairwise formulas of Chan, Golub and LeVeque (1979) and Pebay (2008): given their mean
// relative to the same shift, and the sums of the powers of their deviations from it.
inline void JoinMoment(const GrowingMoments& to, std::ptrdiff_t i, double before, double fa,
                       double fb, double mean, double m2, double m3, double m4) {
  const double delta = mean - to.mean[i], square = delta * delta;
  // Fourth before third before second: each needs the old lower ones.
  to.m4[i] += m4 + square * square * before * fb * (fa * fa - fa * fb + fb * fb) +
              6 * square * (fa * fa * m2 + fb * fb * to.m2[i]) +
              4 * delta * (fa * m3 - fb * to.m3[i]);
  to.m3[i] += m3 + square * delta * before * fb * (fa - fb) + 3 * delta * (fa * m2 - fb * to.m2[i]);
  to.m2[i] += m2 + square * before * fb;
  to.mean[i] += delta * fb;
}

// The same for all dimensions: `count` samples to `before` others.
void JoinMoments(const GrowingMoments& to, std::ptrdiff_t width, double before, double count,
                 const double* mean, const double* m2, const double* m3, const double* m4);

}  // namespace mergeplan
