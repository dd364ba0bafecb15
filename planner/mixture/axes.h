#pragma once

#include <cstddef>

// The decompositions behind a mixture, apart from the rest since their templates compile slowly.
// Matrices are row-major. For this folder only.
namespace mergeplan::mixture {

// Eigenvectors of the symmetric d x d `matrix` as the rows of `axes` and the columns of
// `axes_transposed` (both d x d), by falling eigenvalue; `values` gets the d eigenvalues as they
// come, negative ones too. False where the iteration does not end. O(d^3).
bool EigenAxes(const double* matrix, std::size_t d, double* axes, double* axes_transposed,
               double* values);

// Left singular vectors of Diag(scale) factor, which is d x r (r <= d): `axes` is r x d,
// `axes_transposed` d x r, `values` the r singular values, falling. Null `scale`: none. O(d r^2).
void FactorAxes(const double* factor, const double* scale, std::size_t d, std::size_t r,
                double* axes, double* axes_transposed, double* values);

}  // namespace mergeplan::mixture
