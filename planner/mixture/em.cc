#include "planner/mixture/em.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/parallel.h"

namespace mergeplan {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Rows =
    Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

constexpr Index kBlock = 256;  // rows per task; part of the result's rounding
// Numbers to go through below which threads cost more than they save.
constexpr double kWorthAThread = 1e6;

int Threads(Index n, Index d, Index components, int threads) {
  return static_cast<double>(n) * static_cast<double>(d * components) < kWorthAThread ? 1 : threads;
}

// What turns a row's offset into a vector of independent normal numbers, and the log density at 0.
struct Whitening {
  double log_peak = 0;  // -(d log 2 pi + log det C) / 2
  // kDiagonal: 1 / standard deviations. kLowRank: along the factors' axes what is added.
  VectorXd scale;
  MatrixXd lower;  // kFull: the Cholesky factor
  MatrixXd axes;   // kLowRank: orthonormal, d x rank
  double inverse_noise = 0;
};

absl::StatusOr<Whitening> Prepare(const EmState& state, Index k) {
  Whitening out;
  const Index d = state.means.rows();
  double log_det = 0;
  if (state.kind == CovarianceKind::kDiagonal) {
    out.scale = state.variances.col(k).array().rsqrt();
    log_det = state.variances.col(k).array().log().sum();
  } else if (state.kind == CovarianceKind::kFull) {
    const Eigen::LLT<MatrixXd> cholesky(state.covariances[static_cast<std::size_t>(k)]);
    if (cholesky.info() != Eigen::Success) {
      return absl::InternalError(
          absl::StrCat("the covariance of component ", k, " has no Cholesky factor"));
    }
    out.lower = cholesky.matrixL();
    log_det = 2 * out.lower.diagonal().array().log().sum();
  } else {
    const MatrixXd& f = state.factors[static_cast<std::size_t>(k)];
    const double noise = state.noise[k];
    out.inverse_noise = 1 / noise;
    // The factors' columns are orthogonal: eigenvectors times roots.
    const VectorXd strength = f.colwise().squaredNorm();
    out.axes = f;
    out.scale.resize(f.cols());
    log_det = static_cast<double>(d) * std::log(noise);
    for (Index r = 0; r < f.cols(); ++r) {
      if (strength[r] > 0) out.axes.col(r) /= std::sqrt(strength[r]);
      out.scale[r] = 1 / (noise + strength[r]) - out.inverse_noise;
      log_det += std::log1p(strength[r] / noise);
    }
  }
  out.log_peak = -0.5 * (static_cast<double>(d) * std::log(2 * std::numbers::pi) + log_det);
  return out;
}

// Squared Mahalanobis norms of the columns of `offsets` (d x rows), which are used up.
void Norms(const EmState& state, const Whitening& w, MatrixXd& offsets, VectorXd& norms) {
  if (state.kind == CovarianceKind::kDiagonal) {
    offsets.array().colwise() *= w.scale.array();
    norms = offsets.colwise().squaredNorm();
  } else if (state.kind == CovarianceKind::kFull) {
    w.lower.triangularView<Eigen::Lower>().solveInPlace(offsets);
    norms = offsets.colwise().squaredNorm();
  } else {
    norms = offsets.colwise().squaredNorm() * w.inverse_noise;
    const MatrixXd along = w.axes.transpose() * offsets;
    norms += along.cwiseAbs2().transpose() * w.scale;
  }
}

// Eigenvalues below the floor are lifted to it.
absl::Status LiftEigenvalues(MatrixXd& covariance, double floor) {
  Eigen::LLT<MatrixXd> test(covariance -
                            MatrixXd::Identity(covariance.rows(), covariance.cols()) * floor);
  if (test.info() == Eigen::Success) return absl::OkStatus();
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(covariance);
  if (solver.info() != Eigen::Success) {
    return absl::InternalError("the eigenvalue iteration of a component did not converge");
  }
  const VectorXd values = solver.eigenvalues().cwiseMax(floor);
  covariance = solver.eigenvectors() * values.asDiagonal() * solver.eigenvectors().transpose();
  covariance = (0.5 * (covariance + covariance.transpose())).eval();
  return absl::OkStatus();
}

// The closed form of Tipping and Bishop: leading eigenvectors, and the mean of the other
// eigenvalues.
absl::Status SetFactors(const MatrixXd& covariance, Index rank, double floor, MatrixXd& factors,
                        double& noise) {
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(covariance);
  if (solver.info() != Eigen::Success) {
    return absl::InternalError("the eigenvalue iteration of a component did not converge");
  }
  const Index d = covariance.rows();
  noise = std::max(floor, solver.eigenvalues().head(d - rank).mean());
  factors.resize(d, rank);
  for (Index r = 0; r < rank; ++r) {
    const double strength = std::max(0.0, solver.eigenvalues()[d - 1 - r] - noise);
    factors.col(r) = std::sqrt(strength) * solver.eigenvectors().col(d - 1 - r);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<double> ExpectationStep(const EmState& state, absl::Span<const double> rows,
                                       int threads, std::vector<double>& responsibilities,
                                       std::vector<double>* log_densities) {
  const Index d = state.means.rows(), n = static_cast<Index>(rows.size()) / d;
  const Index components = state.components();
  std::vector<Whitening> prepared;
  for (Index k = 0; k < components; ++k) {
    MP_ASSIGN_OR_RETURN(Whitening one, Prepare(state, k));
    prepared.push_back(std::move(one));
  }
  responsibilities.resize(static_cast<std::size_t>(n * components));
  if (log_densities != nullptr) log_densities->resize(static_cast<std::size_t>(n));
  const int tasks = static_cast<int>((n + kBlock - 1) / kBlock);
  std::vector<double> sums(static_cast<std::size_t>(tasks));
  const Rows x(rows.data(), n, d);
  MP_RETURN_IF_ERROR(ParallelFor(tasks, Threads(n, d, components, threads), [&](int task) {
    const Index first = task * kBlock, count = std::min(kBlock, n - first);
    MatrixXd offsets;
    VectorXd norms;
    MatrixXd logs(components, count);
    for (Index k = 0; k < components; ++k) {
      offsets = x.middleRows(first, count).transpose().colwise() - state.means.col(k);
      Norms(state, prepared[static_cast<std::size_t>(k)], offsets, norms);
      logs.row(k) = (std::log(state.weights[k]) + prepared[static_cast<std::size_t>(k)].log_peak -
                     0.5 * norms.array())
                        .matrix()
                        .transpose();
    }
    double sum = 0;
    for (Index r = 0; r < count; ++r) {
      const double largest = logs.col(r).maxCoeff();
      double total = 0;
      for (Index k = 0; k < components; ++k) total += std::exp(logs(k, r) - largest);
      const double log_density = largest + std::log(total);
      for (Index k = 0; k < components; ++k) {
        responsibilities[static_cast<std::size_t>((first + r) * components + k)] =
            std::exp(logs(k, r) - log_density);
      }
      if (log_densities != nullptr) {
        (*log_densities)[static_cast<std::size_t>(first + r)] = log_density;
      }
      sum += log_density;
    }
    sums[static_cast<std::size_t>(task)] = sum;
    return true;
  }));
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

absl::Status MaximisationStep(absl::Span<const double> rows,
                              const std::vector<double>& responsibilities, int threads,
                              EmState& state) {
  const Index d = state.means.rows(), n = static_cast<Index>(rows.size()) / d;
  const Index components = static_cast<Index>(responsibilities.size()) / n;
  const Rows x(rows.data(), n, d);
  const Rows r(responsibilities.data(), n, components);
  std::vector<Index> kept;
  for (Index k = 0; k < components; ++k) {
    if (r.col(k).sum() >= 0.5) kept.push_back(k);
  }
  const Index left = static_cast<Index>(kept.size());
  state.weights.resize(left);
  state.means.resize(d, left);
  state.variances.resize(d, state.kind == CovarianceKind::kDiagonal ? left : 0);
  state.noise.resize(left);
  state.covariances.resize(state.kind == CovarianceKind::kFull ? left : 0);
  state.factors.resize(state.kind == CovarianceKind::kLowRank ? left : 0);
  std::vector<absl::Status> statuses(kept.size());
  MP_RETURN_IF_ERROR(
      ParallelFor(static_cast<int>(left), Threads(n, d, left, threads), [&](int task) {
        const VectorXd share = r.col(kept[static_cast<std::size_t>(task)]);
        const double total = share.sum();
        state.weights[task] = total;
        state.means.col(task) = (x.transpose() * share) / total;
        const VectorXd mean = state.means.col(task);
        if (state.kind == CovarianceKind::kDiagonal) {
          VectorXd sum = VectorXd::Zero(d);
          for (Index i = 0; i < n; ++i) {
            sum.array() += share[i] * (x.row(i).transpose() - mean).array().square();
          }
          state.variances.col(task) = (sum / total).cwiseMax(state.floor);
          return true;
        }
        MatrixXd covariance = MatrixXd::Zero(d, d), offsets;
        for (Index first = 0; first < n; first += kBlock) {
          const Index count = std::min(kBlock, n - first);
          offsets = x.middleRows(first, count).transpose().colwise() - mean;
          offsets.array().rowwise() *= share.segment(first, count).array().sqrt().transpose();
          covariance.selfadjointView<Eigen::Lower>().rankUpdate(offsets);
        }
        covariance /= total;
        covariance.triangularView<Eigen::StrictlyUpper>() = covariance.transpose();
        absl::Status& status = statuses[static_cast<std::size_t>(task)];
        if (state.kind == CovarianceKind::kFull) {
          status = LiftEigenvalues(covariance, state.floor);
          state.covariances[static_cast<std::size_t>(task)] = std::move(covariance);
        } else {
          status = SetFactors(covariance, state.rank, state.floor,
                              state.factors[static_cast<std::size_t>(task)], state.noise[task]);
        }
        return true;
      }));
  for (const absl::Status& status : statuses) MP_RETURN_IF_ERROR(status);
  state.weights /= state.weights.sum();
  return absl::OkStatus();
}

}  // namespace mergeplan
