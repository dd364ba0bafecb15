#pragma once

// What the loops over intervals share: vectors of four doubles and the element functions. Files
// that include it are compiled with finite-math-only (there is no infinity and no NaN in them:
// kNothing stands for "no context"), which lets a comparison become one instruction; least and
// largest are the same in whatever order they are taken, so the version for AVX2 and the baseline
// give the same digits.

#include <algorithm>
#include <cmath>
#include <vector>

#include "planner/base/clones.h"
#include "planner/search/column_problem.h"

#define MP_INLINE inline __attribute__((always_inline))

namespace mergeplan::search {

constexpr double kNothing = 1e307;
constexpr int kRows = 4;  // first levels in registers
constexpr int kTile = 8;  // first levels for which a row of the noisier parts is read once
constexpr int kLanes = 4;
using Vec = double __attribute__((vector_size(kLanes * sizeof(double))));

MP_INLINE Vec Load(const double* p) {
  Vec v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
MP_INLINE Vec All(double x) { return Vec{x, x, x, x}; }
template <bool kMax>
MP_INLINE Vec Better(Vec a, Vec b) {
  if constexpr (kMax) return a > b ? a : b;
  return a < b ? a : b;
}
template <bool kMax>
MP_INLINE double Better(double a, double b) {
  if constexpr (kMax) return a > b ? a : b;
  return a < b ? a : b;
}
template <bool kMax>
MP_INLINE double Reduce(Vec v) {
  return Better<kMax>(Better<kMax>(v[0], v[1]), Better<kMax>(v[2], v[3]));
}
template <bool kMax>
constexpr double Worst() {
  return kMax ? -kNothing : kNothing;
}

// The product of the neighbours [i,m] and [m+1,j].
MP_INLINE double Product(const ColumnProblem& p, int i, int m, double u, double v) {
  if (p.jump == nullptr) return u * v;
  return u + (p.jump->sigma_before[i] + u) * (v * p.jump->over_sigma_before[m + 1]);
}

MP_INLINE double Constant(const ColumnProblem& p, int i, int j) {
  return p.constant ? p.px[i] * p.cx[j] + p.py[i] * p.cy[j] : 0.0;
}

// Factor of the noisiest child [m+1,j] as start of a merge over [i,j].
MP_INLINE double Slope(const ColumnProblem& p, int i, int m, int j) {
  if (p.jump == nullptr) return p.slope[j];
  return p.slope[j] * p.jump->d_last[j][i] * p.jump->over_d_last[j][m + 1];
}

MP_INLINE double Merge(const ColumnProblem& p, int i, int m, int j, double u, double v) {
  return p.omg[j] * Product(p, i, m, u, v) + Slope(p, i, m, j) * v + Constant(p, i, j);
}

// Rows 0..blocks of T + 2 zeros.
inline std::vector<std::vector<double>> Layer(int steps, int blocks) {
  return std::vector<std::vector<double>>(blocks + 1, std::vector<double>(steps + 2, 0.0));
}

}  // namespace mergeplan::search
