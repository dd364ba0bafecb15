#include "adapters/judge/frechet.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "planner/base/memory.h"
#include "planner/base/status_macros.h"

namespace mergeplan::judge {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

absl::Status Check(const FeatureGaussian& gaussian) {
  const std::size_t d = gaussian.mean.size();
  if (d == 0 || gaussian.covariance.size() != d * d) {
    return absl::InvalidArgumentError(
        absl::StrCat("Frechet distance: a mean of ", d, " numbers with a covariance of ",
                     gaussian.covariance.size(), ", expected 1 or more and their square"));
  }
  const auto finite = [](double x) { return std::isfinite(x); };
  if (std::all_of(gaussian.mean.begin(), gaussian.mean.end(), finite) &&
      std::all_of(gaussian.covariance.begin(), gaussian.covariance.end(), finite)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "Frechet distance: mean or covariance hold numbers that are not finite");
}

// The symmetric square root. What rounding left below 0 is 0.
absl::StatusOr<Eigen::MatrixXd> Root(const std::vector<double>& covariance, int d) {
  const Eigen::Map<const Matrix> given(covariance.data(), d, d);
  const Eigen::MatrixXd symmetric = 0.5 * (given + given.transpose());
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(symmetric);
  if (solver.info() != Eigen::Success) {
    return absl::InternalError("Frechet distance: the eigenvalues of a covariance do not converge");
  }
  const double largest = solver.eigenvalues().cwiseAbs().maxCoeff();
  if (solver.eigenvalues().minCoeff() < -1e-6 * largest) {
    return absl::InvalidArgumentError(
        absl::StrCat("Frechet distance: a covariance has the eigenvalue ",
                     solver.eigenvalues().minCoeff(), ", expected none below 0"));
  }
  const Eigen::VectorXd roots = solver.eigenvalues().cwiseMax(0).cwiseSqrt();
  return Eigen::MatrixXd(solver.eigenvectors() * roots.asDiagonal() *
                         solver.eigenvectors().transpose());
}

}  // namespace

absl::StatusOr<FeatureGaussian> FitFeatures(absl::Span<const double> features, int dimensions) {
  if (dimensions < 1 || features.size() % static_cast<std::size_t>(dimensions) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("features: ", features.size(), " numbers, expected rows of ", dimensions));
  }
  const auto rows = static_cast<std::int64_t>(features.size()) / dimensions;
  if (rows < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("features of ", rows, " samples, expected 2 or more for a covariance"));
  }
  const double d = dimensions;
  MP_RETURN_IF_ERROR(CheckMemory(absl::StrCat("a covariance of ", dimensions, " features"),
                                 8 * (d * d * 3 + static_cast<double>(features.size()))));
  const Eigen::Map<const Matrix> all(features.data(), rows, dimensions);
  if (!all.allFinite()) {
    return absl::InvalidArgumentError("features hold numbers that are not finite");
  }
  FeatureGaussian out;
  out.rows = rows;
  const Eigen::RowVectorXd mean = all.colwise().mean();
  const Matrix centred = all.rowwise() - mean;
  const Matrix covariance = centred.transpose() * centred / static_cast<double>(rows - 1);
  out.mean.assign(mean.begin(), mean.end());
  out.covariance.assign(covariance.data(), covariance.data() + covariance.size());
  if (!covariance.allFinite()) {
    return absl::InvalidArgumentError("features are too large for a covariance in float64");
  }
  return out;
}

absl::StatusOr<double> FrechetDistance(const FeatureGaussian& a, const FeatureGaussian& b) {
  MP_RETURN_IF_ERROR(Check(a));
  MP_RETURN_IF_ERROR(Check(b));
  if (a.dimensions() != b.dimensions()) {
    return absl::InvalidArgumentError(absl::StrCat("Frechet distance: of ", a.dimensions(),
                                                   " and of ", b.dimensions(), " dimensions"));
  }
  const int d = a.dimensions();
  MP_ASSIGN_OR_RETURN(const Eigen::MatrixXd root_a, Root(a.covariance, d));
  MP_ASSIGN_OR_RETURN(const Eigen::MatrixXd root_b, Root(b.covariance, d));
  const Eigen::MatrixXd product = root_a * root_b;
  const double cross = Eigen::BDCSVD<Eigen::MatrixXd>(product).singularValues().sum();
  double mean = 0, traces = 0;
  for (int k = 0; k < d; ++k) {
    const double difference = a.mean[k] - b.mean[k];
    mean += difference * difference;
    const auto diagonal = static_cast<std::size_t>(k) * (d + 1);
    traces += a.covariance[diagonal] + b.covariance[diagonal];
  }
  const double distance = mean + traces - 2 * cross;
  if (!std::isfinite(distance)) {
    return absl::InvalidArgumentError("Frechet distance: the numbers are too large for float64");
  }
  return std::max(0.0, distance);
}

}  // namespace mergeplan::judge
