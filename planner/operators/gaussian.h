#pragma once

#include <Eigen/Core>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/schedule/schedule.h"

namespace mergeplan {

// ---- One dimension with variance lambda (as:real_data_distribution), in the coordinates of the
// schedule (a native variance divided by data_scale^2).

// n_t = alpha_t^2 lambda + sigma_t^2, the variance of z_t; t = 0..T.
double InputVariance(const Schedule& schedule, int t, double lambda);
// x0 = gain * z_t (prop:optimal_denoising_estimator); t = 1..T.
double DenoiserGain(const Schedule& schedule, int t, double lambda);
// The teacher's x0 estimate at level j used for the jump to level i-1; Jump(t, t) is the DDIM step
// (cor:optimal_single_operator, eq:single_operator_formula). 1 <= i <= j <= T.
double JumpGain(const Schedule& schedule, int i, int j, double lambda);

// ---- Full covariance.

// z -> A z + b.
struct AffineMap {
  Eigen::MatrixXd A;  // d x d
  Eigen::VectorXd b;  // d

  Eigen::VectorXd operator()(const Eigen::VectorXd& z) const { return A * z + b; }
};

// second(first(z)).
AffineMap Compose(const AffineMap& second, const AffineMap& first);

// The teacher that is optimal for N(mean, covariance) data, in full matrices and in the coordinates
// of the schedule. For checks and small problems: plans are made in the eigenbasis, where
// everything is diagonal (see Model).
class FullGaussianTeacher {
 public:
  // `covariance` is d x d, symmetric within 1e-9 of its largest entry, positive semidefinite within
  // the same; singular is fine. INVALID_ARGUMENT names what is wrong. O(d^3).
  static absl::StatusOr<FullGaussianTeacher> Create(Schedule schedule, Eigen::VectorXd mean,
                                                    const Eigen::MatrixXd& covariance);

  const Schedule& schedule() const { return schedule_; }
  // Eigenvalues in falling order and the basis, one direction per column.
  const Eigen::VectorXd& variances() const { return variances_; }
  const Eigen::MatrixXd& basis() const { return basis_; }

  // E[x_0 | z_t], t = 1..T: A = alpha_t S (alpha_t^2 S + sigma_t^2 I)^{-1}, b = (I - alpha_t A)
  // mean (prop:optimal_denoising_estimator, general form). O(d^3).
  AffineMap Denoiser(int t) const;
  // One DDIM step from level t to t-1 (cor:optimal_single_operator). O(d^3).
  AffineMap Step(int t) const { return Composite(t, t); }
  // The steps last, last-1, .., first, from level `last` to first-1
  // (def:composite_teacher_operator, eq:composite_operator_formula). O(d^3 + d T).
  AffineMap Composite(int first, int last) const;
  // def:surrogate_composite_operator over all steps, in the eigenbasis. O(d^3 + d T).
  AffineMap Surrogate() const;

  // What the teacher loses (prop:teacher_contracts_covariance): the eigenvalues of
  // covariance - Cov(T_T(z_T)) for z_T ~ N(., I), in the order of variances(). With a variance
  // preserving schedule that ends in pure noise they are >= 0.
  Eigen::VectorXd CovarianceLoss() const;

 private:
  FullGaussianTeacher() = default;
  Eigen::VectorXd CompositeGains(int first, int last) const;
  // The map with the gains in the eigenbasis that takes `from` to `to` (both multiples of mean_).
  AffineMap FromGains(const Eigen::VectorXd& gains, double from, double to) const;

  Schedule schedule_;
  Eigen::VectorXd mean_, variances_;
  Eigen::MatrixXd basis_;
};

}  // namespace mergeplan
