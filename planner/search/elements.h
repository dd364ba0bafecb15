#pragma once

#include <cstddef>

// What one column of one candidate is worth, step by step: the functions that the processor's loops
// (kernels.cc) and the device's kernels (cuda/bodies.h) are both made of. Compiled without
// contraction on both sides (-ffp-contract=off, -fmad=false) they give the same digits: double
// arithmetic is rounded alike on both, denormal numbers included. C++17, as device code is.
#if defined(__CUDACC__)
#define MERGEPLAN_EACH __host__ __device__ __forceinline__
#else
#define MERGEPLAN_EACH inline __attribute__((always_inline))
#endif

namespace mergeplan::search {

// Sums over columns have so many partial sums, column c going to the one with number c % kLanes,
// and may end early after every kBlock columns.
constexpr std::size_t kLanes = 8;
constexpr std::size_t kBlock = 16;

// Value of a product of u (left) and v (right) whose rule has ju = jv = 0, and of any product.
MERGEPLAN_EACH double PlainProduct(double juv, double u, double v) { return juv * (u * v); }
MERGEPLAN_EACH double Product(double ju, double jv, double juv, double u, double v) {
  return ju * u + jv * v + juv * (u * v);
}

// Value of a merge of that product.
MERGEPLAN_EACH double Merged(double omg, double g, double product, double start) {
  return omg * product + g * start;
}

// std::min, std::max, which device code does not have.
MERGEPLAN_EACH double Lesser(double x, double y) { return y < x ? y : x; }
MERGEPLAN_EACH double Larger(double x, double y) { return x < y ? y : x; }

// A column's share of the bound.
MERGEPLAN_EACH double Share(double a, double b, double x) {
  const double e = Larger(0.0, a + b * x);
  return e * e;
}

// What the bound of a row loses in a column by taking over another row's share.
MERGEPLAN_EACH double Loss(double share, double other) { return Larger(0.0, share - other); }

// Below 0 where x is better than y. sign +1: larger is better, -1: smaller is better.
MERGEPLAN_EACH double Lead(double sign, double y, double x) { return sign * (y - x); }

MERGEPLAN_EACH double Better(double sign, double y, double x) {
  return sign > 0 ? Larger(y, x) : Lesser(y, x);
}

MERGEPLAN_EACH double SumOfLanes(const double* lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

}  // namespace mergeplan::search
