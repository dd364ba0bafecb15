#include "planner/spectrum/join_moments.h"

#include "planner/base/clones.h"

namespace mergeplan {

MP_CLONES void JoinMoments(const GrowingMoments& to, std::ptrdiff_t width, double before,
                           double count, const double* mean, const double* m2, const double* m3,
                           const double* m4) {
  const double n = before + count, fa = before / n, fb = count / n;
#pragma GCC ivdep
  for (std::ptrdiff_t i = 0; i < width; ++i) {
    JoinMoment(to, i, before, fa, fb, mean[i], m2[i], m3[i], m4[i]);
  }
}

}  // namespace mergeplan
