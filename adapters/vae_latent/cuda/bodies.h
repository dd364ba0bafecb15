#pragma once

#include <cstdint>

#include "planner/device/blocks.h"
#include "planner/device/numbers.h"

// What one thread of each kernel does. Used by the kernels themselves (launch.cu) and by the
// emulation. C++17 and nothing but raw pointers, all of them into the device's memory.
namespace mergeplan::latents_device {

using device::Number;

// Of numbers whose count is known from elsewhere: the mean, and the sums of the powers of the
// deviations from it.
struct Moments {
  double mean, m2, m3, m4;
};

// Joins the moments of nb >= 1 other numbers to those of na >= 0, by the formulas of Chan, Golub
// and LeVeque (1979) and Pebay (2008), as AddMoments of planner/spectrum has them.
MERGEPLAN_HOST_DEVICE void JoinMoments(double nb, const Moments& b, double na, Moments* a) {
  const double fa = na / (na + nb), fb = nb / (na + nb);
  const double delta = b.mean - a->mean, square = delta * delta;
  // Fourth before third before second: each needs the old lower ones.
  a->m4 += b.m4 + square * square * (na * fb * (fa * fa - fa * fb + fb * fb)) +
           6 * square * (b.m2 * (fa * fa) + a->m2 * (fb * fb)) +
           4 * delta * (b.m3 * fa - a->m3 * fb);
  a->m3 += b.m3 + square * delta * (na * fb * (fa - fb)) + 3 * delta * (b.m2 * fa - a->m2 * fb);
  a->m2 += b.m2 + square * (na * fb);
  a->mean += delta * fb;
}

// Rows that a thread holds in registers: their mean is taken before their deviations are.
constexpr int kTile = 16;

// Moments, less the shift, of blocks of rows: block b has the rows b, b + blocks, …, so that
// neighbouring threads read neighbouring numbers however few dimensions there are. A thread for
// each block and dimension. 1 <= blocks <= rows.
struct SumArgs {
  std::int64_t rows, d, blocks;
  const void* data;  // [rows][d] of `number`
  Number number;
  const double* shift;  // [d]
  Moments* partial;     // [blocks][d]
};
template <typename X>
MERGEPLAN_HOST_DEVICE void SumThread(const SumArgs& q, std::int64_t at) {
  const std::int64_t step = q.blocks * q.d;
  const X* next = static_cast<const X*>(q.data) + at;
  const double shift = q.shift[at % q.d];
  Moments all = {0, 0, 0, 0};
  double count = 0;
  for (std::int64_t row = at / q.d; row < q.rows; row += kTile * q.blocks) {
    double x[kTile], sum = 0;
    int held = 0;
    for (int m = 0; m < kTile; ++m) {
      const bool there = row + m * q.blocks < q.rows;
      x[m] = there ? static_cast<double>(device::Widen(next[m * step])) - shift : 0;
      sum += x[m];
      held += there ? 1 : 0;
    }
    next += kTile * step;
    Moments tile = {sum / held, 0, 0, 0};
    for (int m = 0; m < kTile; ++m) {
      const double e = m < held ? x[m] - tile.mean : 0, square = e * e;
      tile.m2 += square;
      tile.m3 += square * e;
      tile.m4 += square * square;
    }
    JoinMoments(held, tile, count, &all);
    count += held;
  }
  q.partial[at] = all;
}

// Joins blocks pairwise, in place: with `step` 1 the odd ones to the even ones, with 2 every fourth
// to the one two before it, and so on. A thread for each pair and dimension.
struct JoinArgs {
  std::int64_t rows, d, blocks, step;
  Moments* partial;
};
// Pairs that there are.
MERGEPLAN_HOST_DEVICE std::int64_t Pairs(const JoinArgs& q) {
  return (q.blocks + q.step - 1) / (2 * q.step);
}
// Rows of the blocks from `begin` on that have been joined to it.
MERGEPLAN_HOST_DEVICE double JoinedRows(const JoinArgs& q, std::int64_t begin) {
  const std::int64_t end = begin + q.step < q.blocks ? begin + q.step : q.blocks;
  const std::int64_t more = q.rows % q.blocks;  // so many blocks have a row more than the others
  const std::int64_t with_more = more < begin ? 0 : (more < end ? more : end) - begin;
  return static_cast<double>(q.rows / q.blocks * (end - begin) + with_more);
}
MERGEPLAN_HOST_DEVICE void JoinThread(const JoinArgs& q, std::int64_t at) {
  const std::int64_t k = at % q.d, a = at / q.d * 2 * q.step, b = a + q.step;
  JoinMoments(JoinedRows(q, b), q.partial[b * q.d + k], JoinedRows(q, a), q.partial + a * q.d + k);
}

// What came out, the shift in the mean again: a thread for each dimension.
struct FinishArgs {
  std::int64_t d;
  const Moments* partial;  // [d], of all rows
  const double* shift;     // [d]
  double* out;             // [4][d]: mean, m2, m3, m4
};
MERGEPLAN_HOST_DEVICE void FinishThread(const FinishArgs& q, std::int64_t k) {
  q.out[k] = q.partial[k].mean + q.shift[k];
  q.out[q.d + k] = q.partial[k].m2;
  q.out[2 * q.d + k] = q.partial[k].m3;
  q.out[3 * q.d + k] = q.partial[k].m4;
}

// Deviations from the mean in float64, for the products of the covariance: a thread for each.
struct CentreArgs {
  std::int64_t numbers, d;
  const void* data;  // [numbers / d][d] of `number`
  Number number;
  const double* shift;     // [d]
  const Moments* partial;  // [d], of all rows, less the shift
  double* out;             // [numbers / d][d]
};
template <typename X>
MERGEPLAN_HOST_DEVICE void CentreThread(const CentreArgs& q, std::int64_t at) {
  const std::int64_t k = at % q.d;
  const double x = static_cast<double>(device::Widen(static_cast<const X*>(q.data)[at]));
  q.out[at] = x - q.shift[k] - q.partial[k].mean;
}

}  // namespace mergeplan::latents_device
