#include "planner/search/kernels.h"

#include <algorithm>

// Two versions of every loop: one for machines with AVX2, one for all others. Sanitizers do not go
// with the mechanism (an ifunc runs before they are ready), so sanitizer builds have the baseline
// only.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define MP_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define MP_CLONES
#endif

namespace mergeplan::search {
namespace {

constexpr std::size_t kLanes = 8;
constexpr std::size_t kBlock = 16;

inline __attribute__((always_inline)) void ValueBlock(std::size_t begin, std::size_t end,
                                                      const CandidateRule& rule, const double* u,
                                                      const double* v, double* out) {
  const double ju = rule.ju, jv = rule.jv, juv = rule.juv;
  if (ju == 0 && jv == 0) {
    for (std::size_t c = begin; c < end; ++c) out[c - begin] = juv * (u[c] * v[c]);
  } else {
    for (std::size_t c = begin; c < end; ++c) {
      out[c - begin] = ju * u[c] + jv * v[c] + juv * (u[c] * v[c]);
    }
  }
  if (!rule.merge) return;
  const double* start = rule.start == nullptr ? v : rule.start;
  const double* omg = rule.omg;
  const double* g = rule.g;
  for (std::size_t c = begin; c < end; ++c) {
    out[c - begin] = omg[c] * out[c - begin] + g[c] * start[c];
  }
  if (rule.offset == nullptr) return;
  for (std::size_t c = begin; c < end; ++c) out[c - begin] += rule.offset[c];
}

inline __attribute__((always_inline)) double Sum(const double* lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

// Adds max(0, a + b x)^2 of x[0..count) to the lanes; column c of the block goes to lane c %
// kLanes.
inline __attribute__((always_inline)) void AddBound(std::size_t count, const double* x,
                                                    const double* a, const double* b,
                                                    double* lanes) {
  std::size_t c = 0;
  for (; c + kLanes <= count; c += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      const double e = std::max(0.0, a[c + l] + b[c + l] * x[c + l]);
      lanes[l] += e * e;
    }
  }
  for (std::size_t l = 0; c + l < count; ++l) {
    const double e = std::max(0.0, a[c + l] + b[c + l] * x[c + l]);
    lanes[l] += e * e;
  }
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
    sum = Sum(lanes);
    if (sum > limit) return sum;
  }
  return sum;
}

MP_CLONES double RowBound(std::size_t n, const double* x, const double* a, const double* b) {
  double lanes[kLanes] = {};
  AddBound(n, x, a, b, lanes);
  return Sum(lanes);
}

MP_CLONES bool Dominates(std::size_t n, const double* y, const double* x, const double* sign) {
  for (std::size_t begin = 0; begin < n; begin += kLanes) {
    const std::size_t end = std::min(n, begin + kLanes);
    double worst = 0;
    for (std::size_t c = begin; c < end; ++c) worst = std::min(worst, sign[c] * (y[c] - x[c]));
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
      const double e = std::max(0.0, a[c + l] + b[c + l] * x[c + l]);
      squares[c + l] = e * e;
      lanes[l] += e * e;
    }
  }
  for (std::size_t l = 0; c + l < n; ++l) {
    const double e = std::max(0.0, a[c + l] + b[c + l] * x[c + l]);
    squares[c + l] = e * e;
    lanes[l] += e * e;
  }
  return Sum(lanes);
}

MP_CLONES double SquaresLoss(std::size_t n, const double* y, const double* x, double limit) {
  double lanes[kLanes] = {};
  double sum = 0;
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    const std::size_t end = std::min(n, begin + kBlock);
    std::size_t c = begin;
    for (; c + kLanes <= end; c += kLanes) {
      for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += std::max(0.0, y[c + l] - x[c + l]);
    }
    for (std::size_t l = 0; c + l < end; ++l) lanes[l] += std::max(0.0, y[c + l] - x[c + l]);
    sum = Sum(lanes);
    if (sum > limit) return sum;
  }
  return sum;
}

MP_CLONES void Lessen(std::size_t n, double* y, const double* x) {
  for (std::size_t c = 0; c < n; ++c) y[c] = std::min(y[c], x[c]);
}

MP_CLONES void Absorb(std::size_t n, double* y, const double* x, const double* sign) {
  for (std::size_t c = 0; c < n; ++c)
    y[c] = sign[c] > 0 ? std::max(y[c], x[c]) : std::min(y[c], x[c]);
}

}  // namespace mergeplan::search
