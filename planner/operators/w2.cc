#include "planner/operators/w2.h"

#include <Eigen/Eigenvalues>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace mergeplan {
namespace {

using Solver = Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>;

// Eigenvectors times the roots of the eigenvalues: a factor F with F F^T = cov.
absl::StatusOr<Eigen::MatrixXd> Factor(const Eigen::MatrixXd& cov, const char* name) {
  const double slack = 1e-9 * cov.cwiseAbs().maxCoeff();
  if ((cov - cov.transpose()).cwiseAbs().maxCoeff() > slack) {
    return absl::InvalidArgumentError(absl::StrFormat("%s covariance is not symmetric", name));
  }
  const Solver solver((cov + cov.transpose()) / 2);
  if (solver.info() != Eigen::Success) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s covariance: its eigenvalues could not be found", name));
  }
  if (solver.eigenvalues().minCoeff() < -slack) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s covariance has the eigenvalue %g, expected none below 0", name,
                        solver.eigenvalues().minCoeff()));
  }
  return solver.eigenvectors() * solver.eigenvalues().cwiseMax(0.0).cwiseSqrt().asDiagonal();
}

}  // namespace

absl::StatusOr<double> W2Squared(const Eigen::VectorXd& mean1, const Eigen::MatrixXd& cov1,
                                 const Eigen::VectorXd& mean2, const Eigen::MatrixXd& cov2) {
  const Eigen::Index d = mean1.size();
  if (d == 0 || mean2.size() != d || cov1.rows() != d || cov1.cols() != d || cov2.rows() != d ||
      cov2.cols() != d) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "means of %d and %d, covariances %d x %d and %d x %d: expected equal sizes of at least 1",
        d, mean2.size(), cov1.rows(), cov1.cols(), cov2.rows(), cov2.cols()));
  }
  if (!mean1.allFinite() || !mean2.allFinite() || !cov1.allFinite() || !cov2.allFinite()) {
    return absl::InvalidArgumentError("mean or covariance: not finite");
  }
  const absl::StatusOr<Eigen::MatrixXd> f1 = Factor(cov1, "first");
  if (!f1.ok()) return f1.status();
  const absl::StatusOr<Eigen::MatrixXd> f2 = Factor(cov2, "second");
  if (!f2.ok()) return f2.status();
  // tr (S^{1/2} S' S^{1/2})^{1/2} is the sum of the singular values of F1^T F2, which loses no
  // digits to the square that it is the root of.
  const Eigen::BDCSVD<Eigen::MatrixXd> svd(f1->transpose() * *f2);
  const double trace = f1->squaredNorm() + f2->squaredNorm() - 2 * svd.singularValues().sum();
  return (mean1 - mean2).squaredNorm() + std::max(trace, 0.0);
}

double W2SquaredDiagonal(absl::Span<const double> mean1, absl::Span<const double> variances1,
                         absl::Span<const double> mean2, absl::Span<const double> variances2) {
  double sum = 0;
  for (size_t k = 0; k < mean1.size(); ++k) {
    const double mean = mean1[k] - mean2[k];
    const double sd = std::sqrt(variances1[k]) - std::sqrt(variances2[k]);
    sum += mean * mean + sd * sd;
  }
  return sum;
}

double W2SquaredLinearMaps(absl::Span<const double> a, absl::Span<const double> b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    const double sd = std::abs(a[k]) - std::abs(b[k]);
    sum += sd * sd;
  }
  return sum;
}

}  // namespace mergeplan
