#pragma once

#include <cstddef>

namespace mergeplan {

// The numerical inner loops of this folder, compiled once per instruction set from kernels_impl.cc
// and chosen at run time. Plain pointers only: nothing inline may cross this border (see
// README.md). All matrices are row-major unless said otherwise. Functions that return bool answer
// false when memory ran out; none of them throws. Each may run on several threads on disjoint
// output.
struct Kernels {
  const char* name;  // "baseline" or "x86-64-v3"

  // Central moments of `count` samples (count x d) in the columns [first, last) after `shift` (d)
  // has been taken off in float64: mean (of the shifted values) and the sums of the 2nd, 3rd and
  // 4th powers of the deviations from it, d each. Where `centred` (count x d) is not null it
  // receives those deviations. A column that is constant gives exact zeros if `shift` holds its
  // value.
  void (*moments)(const double* samples, std::ptrdiff_t count, std::ptrdiff_t d,
                  const double* shift, std::ptrdiff_t first, std::ptrdiff_t last, double* centred,
                  double* mean, double* m2, double* m3, double* m4);

  // Adds centred^T centred to the columns [first, last) of `comoment` (d x d, column-major), on and
  // below the diagonal only (within the block [first, last) x [first, last) too).
  bool (*rank_update)(const double* centred, std::ptrdiff_t count, std::ptrdiff_t d,
                      std::ptrdiff_t first, std::ptrdiff_t last, double* comoment);

  // Eigenvalues, ascending, and eigenvectors (row i belongs to value i) of a symmetric d x d
  // matrix. `converged` is false when the iteration did not end.
  bool (*eigen)(const double* matrix, std::ptrdiff_t d, double* values, double* vectors,
                bool* converged);

  // out (count x d) = samples (count x d) times `vectors` (d x d) transposed: coordinates along
  // rows.
  bool (*multiply_transposed_f32)(const float* samples, std::ptrdiff_t count, std::ptrdiff_t d,
                                  const float* vectors, float* out);
  bool (*multiply_transposed_f64)(const double* samples, std::ptrdiff_t count, std::ptrdiff_t d,
                                  const double* vectors, double* out);
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
// The fastest of these that this processor can run.
const Kernels& BestKernels();

}  // namespace mergeplan
