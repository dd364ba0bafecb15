#pragma once

#include <cstddef>

namespace mergeplan {

// The most rows of a block: a panel of them stays in the first-level cache, 96 columns in the
// second-level one.
inline constexpr std::ptrdiff_t kPackedRows = 192;

// The numerical inner loops of this folder, compiled once per instruction set from kernels_impl.cc
// and chosen at run time. Plain pointers only: nothing inline may cross this border (see
// README.md). All matrices are row-major unless said otherwise. Functions that return bool answer
// false when memory ran out; none of them throws. Each may run on several threads on disjoint
// output.
struct Kernels {
  const char* name;  // "baseline", "x86-64-v3" or "x86-64-v4"

  // Columns that stand side by side in a packed block, a divisor of 96. A block of samples (rows x
  // d, at most kPackedRows rows) is packed as `rank_update` reads it: in panels of `panel` columns
  // (the last filled up with zeros), inside a panel row by row.
  std::ptrdiff_t panel;

  // Central moments of a block of `count` samples (count x d) after `shift` (d) has been taken off
  // in float64: mean (of the shifted values) and the sums of the 2nd, 3rd and 4th powers of the
  // deviations from it, d each. Where `packed` is not null it receives those deviations, packed. A
  // column that is constant gives exact zeros if `shift` holds its value; one with a value that is
  // not finite has a mean that is not.
  void (*moments_f32)(const float* samples, std::ptrdiff_t count, std::ptrdiff_t d,
                      const double* shift, double* packed, double* mean, double* m2, double* m3,
                      double* m4);
  void (*moments_f64)(const double* samples, std::ptrdiff_t count, std::ptrdiff_t d,
                      const double* shift, double* packed, double* mean, double* m2, double* m3,
                      double* m4);

  // Adds, column by column, the first four powers of rows - about to `sums`, four runs of `width`
  // numbers: those of the 1st powers, of the 2nd, the 3rd and the 4th. The rows are `stride` apart.
  // One pass, which takes every value from memory once, and asks for the same number of rows behind
  // these ahead of time (a hint: there need be none).
  void (*add_powers_f32)(const float* rows, std::ptrdiff_t count, std::ptrdiff_t stride,
                         std::ptrdiff_t width, const float* about, double* sums);
  void (*add_powers_f64)(const double* rows, std::ptrdiff_t count, std::ptrdiff_t stride,
                         std::ptrdiff_t width, const double* about, double* sums);

  // Adds X^T X of a packed block X of `rows` rows to the columns [first, last) of `comoment` (d x
  // d, column-major), on and below the diagonal only (within [first, last) x [first, last) too).
  // `first` is a multiple of 96, as `last` is unless it is d. Takes no memory. Fastest where
  // `packed` is a multiple of 64 bytes.
  void (*rank_update)(const double* packed, std::ptrdiff_t rows, std::ptrdiff_t d,
                      std::ptrdiff_t first, std::ptrdiff_t last, double* comoment);

  // Eigenvalues, ascending, and eigenvectors (row i belongs to value i) of a symmetric d x d
  // matrix. `converged` is false when the iteration did not end.
  bool (*eigen)(const double* matrix, std::ptrdiff_t d, double* values, double* vectors,
                bool* converged);

  // out (count x k) = samples (count x d) times `vectors` (k x d) transposed: coordinates along
  // rows.
  bool (*multiply_transposed_f32)(const float* samples, std::ptrdiff_t count, std::ptrdiff_t d,
                                  const float* vectors, std::ptrdiff_t k, float* out);
  bool (*multiply_transposed_f64)(const double* samples, std::ptrdiff_t count, std::ptrdiff_t d,
                                  const double* vectors, std::ptrdiff_t k, double* out);
  // Adds to the columns [first, last) of `out` (b x d) those of weights^T values, `weights` being
  // count x b and `values` count x d.
  bool (*accumulate)(const double* weights, const double* values, std::ptrdiff_t count,
                     std::ptrdiff_t b, std::ptrdiff_t d, std::ptrdiff_t first, std::ptrdiff_t last,
                     double* out);
  // out (count x d) = samples (count x d) times `matrix` (d x d).
  bool (*multiply_f64)(const double* samples, std::ptrdiff_t count, std::ptrdiff_t d,
                       const double* matrix, double* out);
};

// For every processor that the build targets.
const Kernels& BaselineKernels();
// AVX2 and FMA; null where this processor lacks them or the build is not for x86-64.
const Kernels* X8664V3Kernels();
// AVX-512; null likewise.
const Kernels* X8664V4Kernels();
// The fastest of these that this processor can run.
const Kernels& BestKernels();

}  // namespace mergeplan
