#include "planner/search/kernels.h"

#include <algorithm>

#include "planner/base/clones.h"
#include "planner/search/elements.h"

namespace mergeplan::search {
namespace {

inline __attribute__((always_inline)) void ValueBlock(std::size_t begin, std::size_t end,
                                                      const CandidateRule& rule, const double* u,
                                                      const double* v, double* out) {
  const double ju = rule.ju, jv = rule.jv, juv = rule.juv;
  if (ju == 0 && jv == 0) {
    for (std::size_t c = begin; c < end; ++c) out[c - begin] = PlainProduct(juv, u[c], v[c]);
  } else {
    for (std::size_t c = begin; c < end; ++c) {
      out[c - begin] = Product(ju, jv, juv, u[c], v[c]);
    }
  }
  if (!rule.merge) return;
  const double* start = rule.start == nullptr ? v : rule.start;
  const double* omg = rule.omg;
  const double* g = rule.g;
  for (std::size_t c = begin; c < end; ++c) {
    out[c - begin] = Merged(omg[c], g[c], out[c - begin], start[c]);
  }
  if (rule.offset == nullptr) return;
  for (std::size_t c = begin; c < end; ++c) out[c - begin] += rule.offset[c];
}

// Adds max(0, a + b x)^2 of x[0..count) to the lanes; column c of the block goes to lane c %
// kLanes.
inline __attribute__((always_inline)) void AddBound(std::size_t count, const double* x,
                                                    const double* a, const double* b,
                                                    double* lanes) {
  std::size_t c = 0;
  for (; c + kLanes <= count; c += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += Share(a[c + l], b[c + l], x[c + l]);
  }
  for (std::size_t l = 0; c + l < count; ++l) lanes[l] += Share(a[c + l], b[c + l], x[c + l]);
}

}  // namespace

MP_CLONES void CandidateValue(std::size_t n, const CandidateRule& rule, const double* u,
                              const double* v, double* out) {
  ValueBlock(0, n, rule, u, v, out);
}

MP_CLONES double CandidateBound(std::size_t n, const CandidateRule& rule, const double* u,
                                const double* v, const double* a, const double* b, double limit) {
  double lanes[kLanes] = {};
  double x[kBlock];
  double sum = 0;
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    const std::size_t end = std::min(n, begin + kBlock);
    ValueBlock(begin, end, rule, u, v, x);
    AddBound(end - begin, x, a + begin, b + begin, lanes);
    sum = SumOfLanes(lanes);
    if (sum > limit) return sum;
  }
  return sum;
}

MP_CLONES double RowBound(std::size_t n, const double* x, const double* a, const double* b) {
  double lanes[kLanes] = {};
  AddBound(n, x, a, b, lanes);
  return SumOfLanes(lanes);
}

MP_CLONES bool Dominates(std::size_t n, const double* y, const double* x, const double* sign) {
  for (std::size_t begin = 0; begin < n; begin += kLanes) {
    const std::size_t end = std::min(n, begin + kLanes);
    double worst = 0;
    for (std::size_t c = begin; c < end; ++c) worst = Lesser(worst, Lead(sign[c], y[c], x[c]));
    if (worst < 0) return false;
  }
  return true;
}

MP_CLONES double RowSquares(std::size_t n, const double* x, const double* a, const double* b,
                            double* squares) {
  double lanes[kLanes] = {};
  std::size_t c = 0;
  for (; c + kLanes <= n; c += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      lanes[l] += squares[c + l] = Share(a[c + l], b[c + l], x[c + l]);
    }
  }
  for (std::size_t l = 0; c + l < n; ++l) {
    lanes[l] += squares[c + l] = Share(a[c + l], b[c + l], x[c + l]);
  }
  return SumOfLanes(lanes);
}

MP_CLONES double SquaresLoss(std::size_t n, const double* y, const double* x, double limit) {
  double lanes[kLanes] = {};
  double sum = 0;
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    const std::size_t end = std::min(n, begin + kBlock);
    std::size_t c = begin;
    for (; c + kLanes <= end; c += kLanes) {
      for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += Loss(y[c + l], x[c + l]);
    }
    for (std::size_t l = 0; c + l < end; ++l) lanes[l] += Loss(y[c + l], x[c + l]);
    sum = SumOfLanes(lanes);
    if (sum > limit) return sum;
  }
  return sum;
}

MP_CLONES void Lessen(std::size_t n, double* y, const double* x) {
  for (std::size_t c = 0; c < n; ++c) y[c] = Lesser(y[c], x[c]);
}

MP_CLONES void KeepWorse(std::size_t n, const CandidateRule& rule, const double* u, const double* v,
                         const double* sign, double* worse) {
  double x[kBlock];
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    const std::size_t end = std::min(n, begin + kBlock);
    ValueBlock(begin, end, rule, u, v, x);
    for (std::size_t c = begin; c < end; ++c) worse[c] = Better(-sign[c], worse[c], x[c - begin]);
  }
}

MP_CLONES void LessenThrough(std::size_t n, const CandidateRule& rule, const PartEnds& u,
                             const PartEnds& v, const double* a, const double* b) {
  double best[kBlock], left[kBlock], right[kBlock];
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    const std::size_t end = std::min(n, begin + kBlock);
    ValueBlock(begin, end, rule, u.best, v.best, best);
    ValueBlock(begin, end, rule, u.worst, v.best, left);
    ValueBlock(begin, end, rule, u.best, v.worst, right);
    for (std::size_t c = begin; c < end; ++c) {
      const double e = a[c] + b[c] * best[c - begin];
      u.error_best[c] = Lesser(u.error_best[c], e);
      v.error_best[c] = Lesser(v.error_best[c], e);
      u.error_worst[c] = Lesser(u.error_worst[c], a[c] + b[c] * left[c - begin]);
      v.error_worst[c] = Lesser(v.error_worst[c], a[c] + b[c] * right[c - begin]);
    }
  }
}

MP_CLONES void LessenOnLine(std::size_t n, const double* x, const double* a, const double* b,
                            double* error) {
  for (std::size_t c = 0; c < n; ++c) error[c] = Lesser(error[c], a[c] + b[c] * x[c]);
}

MP_CLONES void Absorb(std::size_t n, double* y, const double* x, const double* sign) {
  for (std::size_t c = 0; c < n; ++c) y[c] = Better(sign[c], y[c], x[c]);
}

}  // namespace mergeplan::search
