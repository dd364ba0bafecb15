#include "planner/gaussianity/mardia.h"

#include <Eigen/Cholesky>
#include <cmath>

#include "planner/gaussianity/tails.h"

namespace mergeplan {

Mardia MardiaTest(const RowMatrix& rows) {
  using Eigen::Index;
  using Eigen::MatrixXd;
  Mardia out;
  const Index q = rows.cols(), count = rows.rows();
  out.dimensions = static_cast<int>(q);
  if (q < 1 || count <= q + 3) return out;
  const double n = static_cast<double>(count), p = static_cast<double>(q);
  // q x n, centred.
  MatrixXd y = rows.transpose();
  y.colwise() -= y.rowwise().mean().eval();
  const Eigen::LLT<MatrixXd> cholesky(y * y.transpose() / n);
  if (cholesky.info() != Eigen::Success) return out;
  cholesky.matrixL().solveInPlace(y);
  // Sum over pairs of (y_i . y_j)^3 = sum over a, b, c of (sum_i y_ai y_bi y_ci)^2.
  for (Index a = 0; a < q; ++a) {
    for (Index b = a; b < q; ++b) {
      const Eigen::RowVectorXd ab = y.row(a).cwiseProduct(y.row(b));
      for (Index c = b; c < q; ++c) {
        const double mean = ab.dot(y.row(c)) / n;
        // How often the sorted triple stands among all.
        const double times = a == c ? 1 : a == b || b == c ? 3 : 6;
        out.skewness += times * mean * mean;
      }
    }
  }
  out.kurtosis = y.colwise().squaredNorm().array().square().mean();
  const double correction = (p + 1) * (n + 1) * (n + 3) / (n * ((n + 1) * (p + 1) - 6));
  out.skewness_p = ChiSquaredUpper(n * out.skewness * correction / 6, p * (p + 1) * (p + 2) / 6);
  const double mean = p * (p + 2) * (n - 1) / (n + 1);
  const double variance = 8 * p * (p + 2) * (n - 3) * (n - p - 1) * (n - p + 1) /
                          ((n + 1) * (n + 1) * (n + 3) * (n + 5));
  if (variance > 0) out.kurtosis_p = NormalTwoSided((out.kurtosis - mean) / std::sqrt(variance));
  return out;
}

}  // namespace mergeplan
