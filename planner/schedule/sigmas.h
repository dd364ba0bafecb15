#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mergeplan {

// Noise levels sigma = sqrt((1 - alphas_cumprod) / alphas_cumprod) of a table, in float32,
// rising. INVALID_ARGUMENT where one is 0 or infinite (names the timestep).
absl::StatusOr<std::vector<double>> SigmasOfTable(absl::Span<const double> alphas_cumprod);

// `count` levels from sigma_max down to sigma_min; `count` = 1 gives sigma_max.
// Karras et al. 2022, eq. 5: a line in sigma^(1/rho).
std::vector<double> KarrasSigmas(double sigma_max, double sigma_min, double rho, int count);
// A line in log sigma.
std::vector<double> ExponentialSigmas(double sigma_max, double sigma_min, int count);
// Quantiles of the beta distribution (0.6, 0.6) between the two.
std::vector<double> BetaSigmas(double sigma_max, double sigma_min, int count);

// Quantile of the symmetric beta distribution (a, a): x with I_x(a, a) = p, 0 <= p <= 1, by
// bisection to the last bit.
double SymmetricBetaQuantile(double p, double a);

// Linear interpolation of table[i] at x (points 0, 1, …), held at the ends.
double Interpolate(absl::Span<const double> table, double x);

// The (fractional) index at which the rising table log_sigmas has the value log(sigma), within 0
// and size - 1. O(log size).
double SigmaToTimestep(double sigma, absl::Span<const double> log_sigmas);

}  // namespace mergeplan
