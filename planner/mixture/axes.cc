#include "planner/mixture/axes.h"

#include <Eigen/Dense>

namespace mergeplan::mixture {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

}  // namespace

bool EigenAxes(const double* matrix, std::size_t d, double* axes, double* axes_transposed,
               double* values) {
  const Eigen::Index n = static_cast<Eigen::Index>(d);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(
      Eigen::Map<const Matrix>(matrix, n, n));
  if (solver.info() != Eigen::Success) return false;
  Eigen::Map<Matrix> columns(axes_transposed, n, n);
  columns = solver.eigenvectors().rowwise().reverse();
  Eigen::Map<Matrix>(axes, n, n) = columns.transpose();
  Eigen::Map<Eigen::VectorXd>(values, n) = solver.eigenvalues().reverse();
  return true;
}

void FactorAxes(const double* factor, const double* scale, std::size_t d, std::size_t r,
                double* axes, double* axes_transposed, double* values) {
  const Eigen::Index rows = static_cast<Eigen::Index>(d), columns = static_cast<Eigen::Index>(r);
  Eigen::MatrixXd scaled = Eigen::Map<const Matrix>(factor, rows, columns);
  if (scale != nullptr) {
    scaled.array().colwise() *= Eigen::Map<const Eigen::ArrayXd>(scale, rows);
  }
  const Eigen::BDCSVD<Eigen::MatrixXd> svd(scaled, Eigen::ComputeThinU);
  Eigen::Map<Matrix>(axes_transposed, rows, columns) = svd.matrixU();
  Eigen::Map<Matrix>(axes, columns, rows) = svd.matrixU().transpose();
  Eigen::Map<Eigen::VectorXd>(values, columns) = svd.singularValues();
}

}  // namespace mergeplan::mixture
