#include "planner/operators/gaussian.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"

namespace mergeplan {

double InputVariance(const Schedule& schedule, int t, double lambda) {
  return schedule.alpha[t] * schedule.alpha[t] * lambda + schedule.sigma[t] * schedule.sigma[t];
}

double DenoiserGain(const Schedule& schedule, int t, double lambda) {
  return schedule.alpha[t] * lambda / InputVariance(schedule, t, lambda);
}

double JumpGain(const Schedule& schedule, int i, int j, double lambda) {
  return (schedule.alpha[i - 1] * schedule.alpha[j] * lambda +
          schedule.sigma[i - 1] * schedule.sigma[j]) /
         InputVariance(schedule, j, lambda);
}

AffineMap Compose(const AffineMap& second, const AffineMap& first) {
  return {second.A * first.A, second.A * first.b + second.b};
}

absl::StatusOr<FullGaussianTeacher> FullGaussianTeacher::Create(Schedule schedule,
                                                                Eigen::VectorXd mean,
                                                                const Eigen::MatrixXd& covariance) {
  MP_RETURN_IF_ERROR(ValidateSchedule(schedule));
  const Eigen::Index d = mean.size();
  if (d == 0) return absl::InvalidArgumentError("mean: empty, expected at least one dimension");
  if (covariance.rows() != d || covariance.cols() != d) {
    return absl::InvalidArgumentError(
        absl::StrFormat("covariance is %d x %d, expected %d x %d like the mean", covariance.rows(),
                        covariance.cols(), d, d));
  }
  if (!mean.allFinite() || !covariance.allFinite()) {
    return absl::InvalidArgumentError("mean or covariance: not finite");
  }
  const double slack = 1e-9 * covariance.cwiseAbs().maxCoeff();
  const double asymmetry = (covariance - covariance.transpose()).cwiseAbs().maxCoeff();
  if (asymmetry > slack) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "covariance is not symmetric: two entries that should be equal differ by %g", asymmetry));
  }
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(
      (covariance + covariance.transpose()) / 2);
  if (solver.info() != Eigen::Success) {
    return absl::InvalidArgumentError("covariance: its eigenvalues could not be found");
  }
  if (solver.eigenvalues().minCoeff() < -slack) {
    return absl::InvalidArgumentError(
        absl::StrFormat("covariance has the eigenvalue %g, expected none below 0",
                        solver.eigenvalues().minCoeff()));
  }
  FullGaussianTeacher teacher;
  teacher.schedule_ = std::move(schedule);
  teacher.mean_ = std::move(mean);
  teacher.variances_ = solver.eigenvalues().reverse().cwiseMax(0.0);
  teacher.basis_ = solver.eigenvectors().rowwise().reverse();
  return teacher;
}

AffineMap FullGaussianTeacher::FromGains(const Eigen::VectorXd& gains, double from,
                                         double to) const {
  AffineMap map;
  map.A = basis_ * gains.asDiagonal() * basis_.transpose();
  map.b = to * mean_ - from * (map.A * mean_);
  return map;
}

AffineMap FullGaussianTeacher::Denoiser(int t) const {
  Eigen::VectorXd gains(variances_.size());
  for (Eigen::Index k = 0; k < gains.size(); ++k) {
    gains[k] = DenoiserGain(schedule_, t, variances_[k]);
  }
  return FromGains(gains, schedule_.alpha[t], 1);
}

Eigen::VectorXd FullGaussianTeacher::CompositeGains(int first, int last) const {
  Eigen::VectorXd gains = Eigen::VectorXd::Ones(variances_.size());
  for (Eigen::Index k = 0; k < gains.size(); ++k) {
    for (int t = first; t <= last; ++t) gains[k] *= JumpGain(schedule_, t, t, variances_[k]);
  }
  return gains;
}

AffineMap FullGaussianTeacher::Composite(int first, int last) const {
  // Every step takes alpha_t mean to alpha_{t-1} mean, so the composite does it end to end.
  return FromGains(CompositeGains(first, last), schedule_.alpha[last], schedule_.alpha[first - 1]);
}

AffineMap FullGaussianTeacher::Surrogate() const {
  Eigen::VectorXd gains = Eigen::VectorXd::Ones(variances_.size());
  const int T = schedule_.steps();
  for (Eigen::Index k = 0; k < gains.size(); ++k) {
    for (int t = 1; t <= T; ++t) {
      const double a = JumpGain(schedule_, t, t, variances_[k]);
      gains[k] *= variances_[k] > 1 ? std::max(a, 1.0) : a;
    }
  }
  return FromGains(gains, schedule_.alpha[T], schedule_.alpha[0]);
}

Eigen::VectorXd FullGaussianTeacher::CovarianceLoss() const {
  return variances_ - CompositeGains(1, schedule_.steps()).cwiseAbs2();
}

}  // namespace mergeplan
