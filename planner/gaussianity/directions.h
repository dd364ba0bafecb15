#pragma once

#include <Eigen/Core>
#include <cstdint>

namespace mergeplan {

// Directions along which to look at samples. For this folder.

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Orthonormal columns (d x k, k <= min(d, n)) that span the leading principal directions of the
// centred rows (n x d), by falling variance: subspace iteration from a random start of k + 8
// columns, four rounds. With k = d they are all. Fewer where the rows have a lower rank. O(n d k).
Eigen::MatrixXd LeadingDirections(const RowMatrix& rows, int k, std::uint64_t seed);

// Unit vectors, uniform on the sphere (d x k).
Eigen::MatrixXd RandomDirections(Eigen::Index d, int k, std::uint64_t seed);

// Unit vectors (d x up to `most`) along which the rows, whose coordinates are uncorrelated with
// variance 1, have extreme kurtosis or skewness: fixed-point iterations from random starts (those
// of independent component analysis with these contrasts). Two modes of like weight show as low
// kurtosis, a small one beside a large one as skewness and high kurtosis, also where no principal
// direction runs through both. By falling |kurtosis - 3| + |skewness|; those alike are left out.
Eigen::MatrixXd PursuitDirections(const RowMatrix& white, int most, std::uint64_t seed);

}  // namespace mergeplan
