#include "adapters/linear/sum_squares.h"

// One version of each function for processors with AVX2 and one for all others, chosen when the
// program starts.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MERGEPLAN_CLONES __attribute__((target_clones("arch=haswell", "default")))
#define MERGEPLAN_INLINE __attribute__((always_inline)) inline
#else
#define MERGEPLAN_CLONES
#define MERGEPLAN_INLINE inline
#endif

namespace mergeplan {
namespace {

constexpr int kWidth = 32;

// `width` <= kWidth neighbouring numbers of every row; their sums stay in registers while the rows
// go by. `stride` is the length of a row.
template <int width, typename T>
MERGEPLAN_INLINE void Tile(const float* noise, std::int64_t rows, std::int64_t stride, T* sums) {
  T sum[width] = {};
  for (std::int64_t b = 0; b < rows; ++b) {
    const float* row = noise + b * stride;
    for (int k = 0; k < width; ++k) {
      const T x = static_cast<T>(row[k]);
      sum[k] += x * x;
    }
  }
  for (int k = 0; k < width; ++k) sums[k] += sum[k];
}

template <typename T>
MERGEPLAN_INLINE void Wide(const float* noise, std::int64_t rows, std::int64_t d, T* sums) {
  std::int64_t k = 0;
  for (; k + kWidth <= d; k += kWidth) Tile<kWidth>(noise + k, rows, d, sums + k);
  for (; k + 4 <= d; k += 4) Tile<4>(noise + k, rows, d, sums + k);
  for (; k < d; ++k) Tile<1>(noise + k, rows, d, sums + k);
}

// Narrow rows: d divides the numbers of kWidth rows, so these are taken as d rows of kWidth
// numbers, number j of row r belonging to dimension (r kWidth + j) % d.
template <typename T>
MERGEPLAN_INLINE void Narrow(const float* noise, std::int64_t rows, std::int64_t d, T* sums) {
  const std::int64_t periods = rows / kWidth;
  for (std::int64_t r = 0; r < d && periods > 0; ++r) {
    T sum[kWidth] = {};
    Tile<kWidth>(noise + r * kWidth, periods, d * kWidth, sum);
    for (int j = 0; j < kWidth; ++j) sums[(r * kWidth + j) % d] += sum[j];
  }
  for (std::int64_t i = periods * kWidth * d; i < rows * d; ++i) {
    const T x = static_cast<T>(noise[i]);
    sums[i % d] += x * x;
  }
}

template <typename T>
MERGEPLAN_INLINE void Sum(const float* noise, std::int64_t rows, std::int64_t d, T* sums) {
  if (d < kWidth) {
    Narrow(noise, rows, d, sums);
  } else {
    Wide(noise, rows, d, sums);
  }
}

}  // namespace

MERGEPLAN_CLONES void SumSquares(const float* noise, std::int64_t rows, std::int64_t d,
                                 double* sums) {
  Sum(noise, rows, d, sums);
}
MERGEPLAN_CLONES void SumSquares(const float* noise, std::int64_t rows, std::int64_t d,
                                 float* sums) {
  Sum(noise, rows, d, sums);
}

}  // namespace mergeplan
