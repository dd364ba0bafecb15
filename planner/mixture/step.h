#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/mixture/kernels.h"
#include "planner/mixture/mixture.h"

namespace mergeplan {

// z = alpha x_0 + sigma eps.
struct NoiseLevel {
  double alpha = 1;
  double sigma = 0;
};

// What the optimal teacher for a mixture makes of a state z at the level `from`:
//
//   to.alpha E[x_0 | z] + to.sigma E[eps | z]  =  sum_k r_k(z) (A_k z + b_k)
//
// (prop:optimal_mixture_denoising_estimator, cor:gmm_single_step), with
//   r_k(z) = P(component k | z)                                        responsibilities
//   A_k = (alpha to.alpha Sigma_k + sigma to.sigma I) C_k^-1,  C_k = alpha^2 Sigma_k + sigma^2 I
//   b_k = (to.alpha I - alpha A_k) mean_k                              affine experts
// `to` may be any pair: a level gives the DDIM step, (1, 0) the denoiser, (0, 1) the noise,
// (-sigma, alpha) the velocity.
//
// All functions take `rows` states of d numbers, row-major, and are const: threads may share a step
// and split the rows, each with its own scratch. They allocate nothing. A row's result depends on
// that row only, to the last bit, and not on the processor. Where z is not finite, or so far away
// that its squared distance from every component overflows (beyond 1e150 standard deviations), the
// row becomes NaN.
//
// Cost per row: O(K d) for diagonal, O(K d r) for low-rank, O(K d^2) for full covariances.
class MixtureStep {
 public:
  // INVALID_ARGUMENT for levels that are not finite or negative (`from`), both 0, or so small that
  // their squares underflow, and where sigma = 0 and a component has a direction without variance,
  // in which it has no density (of full covariances: below 1e-13 of the largest). O(K d), of
  // low-rank mixtures with uneven variances O(K d r^2).
  static absl::StatusOr<MixtureStep> Create(const GaussianMixture& mixture, NoiseLevel from,
                                            NoiseLevel to);

  const GaussianMixture& mixture() const { return mixture_; }
  NoiseLevel from() const { return from_; }
  NoiseLevel to() const { return to_; }
  int components() const { return mixture_.components(); }
  int dimensions() const { return mixture_.dimensions(); }

  // Numbers of scratch for all functions below; the same for all levels of a mixture. A scratch
  // that is too small ends the program with a message.
  std::size_t scratch_size() const;

  // The step; `out` may be `z`. Float states are computed in double.
  void Apply(const double* z, std::size_t rows, double* out, absl::Span<double> scratch) const;
  void Apply(const float* z, std::size_t rows, float* out, absl::Span<double> scratch) const;

  // r: rows x K.
  void Responsibilities(const double* z, std::size_t rows, double* r,
                        absl::Span<double> scratch) const;
  // Of the law of z at `from`: one number per row.
  void LogDensity(const double* z, std::size_t rows, double* log_density,
                  absl::Span<double> scratch) const;

  // The derivative J of the step at z, times `direction` (rows x d). J is symmetric (the step is a
  // multiple of z plus a multiple of the gradient of the log density), so this is J v and v^T J.
  // `out` gets the step itself and may be null; `derivative` may be `direction`.
  void Derivative(const double* z, const double* direction, std::size_t rows, double* out,
                  double* derivative, absl::Span<double> scratch) const;
  void Derivative(const float* z, const float* direction, std::size_t rows, float* out,
                  float* derivative, absl::Span<double> scratch) const;

  // The affine experts: A_k, d x d row-major, and b_k.
  std::vector<double> ExpertMatrix(int k) const;
  std::vector<double> ExpertOffset(int k) const;

  // For loops over tiles: valid as long as this object stays where it is.
  mixture::StepTables tables() const;

 private:
  MixtureStep(GaussianMixture mixture, NoiseLevel from, NoiseLevel to)
      : mixture_(std::move(mixture)), from_(from), to_(to) {}
  absl::Status FillDiagonal(int k, const double* variances);
  absl::Status FillLowRank(int k);

  GaussianMixture mixture_;
  NoiseLevel from_, to_;
  std::vector<double> log_weight_, centre_, target_, inverse_, gain_;
  std::vector<double> root_, inverse_root_, pull_, share_;  // low-rank
  std::vector<double> axes_, axes_transposed_;              // where the mixture has none
};

// E[x_0 | z] for one or more states, rows x d. Errors of MixtureStep::Create, and INVALID_ARGUMENT
// where the length is no multiple of d. To do the same often, keep a MixtureStep.
absl::StatusOr<std::vector<double>> Denoise(const GaussianMixture& mixture,
                                            absl::Span<const double> z, double alpha, double sigma);

}  // namespace mergeplan
