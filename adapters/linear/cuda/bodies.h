#pragma once

#include <cstdint>

#include "adapters/noise/noise.h"
#include "adapters/noise/normal.h"
#include "planner/device/blocks.h"

// What one thread of each kernel does. Used by the kernels themselves (launch.cu) and by the
// emulation. C++17 and nothing but raw pointers, all of them into the backend's memory.
namespace mergeplan::linear_device {

using device::kThreads;

// Rows whose squares one thread adds up.
constexpr std::int64_t kSliceRows = 64;

// Squares of unit noise, summed over slices of rows. `partial` is [merges][count][slices][d]: one
// thread a number of it.
struct SliceArgs {
  std::int64_t merges, count, slices, d;
  std::int64_t rows;  // of a whole batch
  std::int64_t row_begin, row_end;
  std::uint64_t first;      // update
  const StreamName* names;  // [merges]
  double* partial;
};
MERGEPLAN_HOST_DEVICE void SliceThread(const SliceArgs& q, std::int64_t at) {
  const std::int64_t k = at % q.d, slice = at / q.d % q.slices;
  const std::int64_t u = at / q.d / q.slices % q.count, i = at / q.d / q.slices / q.count;
  const std::int64_t begin = q.row_begin + slice * kSliceRows;
  const std::int64_t end = begin + kSliceRows < q.row_end ? begin + kSliceRows : q.row_end;
  const StreamName name = q.names[i];
  const std::uint64_t batch =
      (q.first + static_cast<std::uint64_t>(u)) * static_cast<std::uint64_t>(q.rows);
  double sum = 0;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::uint64_t place =
        (batch + static_cast<std::uint64_t>(row)) * static_cast<std::uint64_t>(q.d) +
        static_cast<std::uint64_t>(k);
    const double x = NormalAt(name, place);
    sum += x * x;
  }
  q.partial[at] = sum;
}

// sums [merges][count][d]: the slices of each, one after the other. One thread a sum.
struct SumArgs {
  std::int64_t sums_count, slices, d;
  const double* partial;
  double* sums;
};
MERGEPLAN_HOST_DEVICE void SumThread(const SumArgs& q, std::int64_t at) {
  const double* part = q.partial + at / q.d * q.slices * q.d + at % q.d;
  double sum = 0;
  for (std::int64_t slice = 0; slice < q.slices; ++slice) sum += part[slice * q.d];
  q.sums[at] = sum;
}

}  // namespace mergeplan::linear_device
