#pragma once

#include "planner/gaussianity/directions.h"

namespace mergeplan {

// Mardia's (1970, 1974) multivariate skewness b1 = mean over pairs of (y_i . y_j)^3 and kurtosis
// b2 = mean of |y_i|^4 of whitened rows, and their p-values under normality (chi-squared with his
// correction for small n; normal with the exact mean and variance). Both are affine invariant.
struct Mardia {
  int dimensions = 0;
  double skewness = 0, skewness_p = 1;
  double kurtosis = 0, kurtosis_p = 1;
};

// `rows` is n x q with n > q + 1 and a covariance of full rank; else p-values of 1. O(n q^3).
Mardia MardiaTest(const RowMatrix& rows);

}  // namespace mergeplan
