#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace mergeplan::calibrate {

// What training leaves of a squared error, as a share of what it began with:
//
//   y(u) = c_0 + sum_k c_k exp(-u / tau_k),   all c >= 0,
//
// with the times tau_k on a fixed grid, a factor 2 apart, from half an update to twice the updates
// that were made. A linear student under SGD is exactly of this kind (its squared error is a sum of
// gamma_k^2u), power laws are mixtures of exponentials too, and whatever the coefficients, y falls,
// is convex, and has a convex root. The coefficients are the least squares of log-like residuals
// (y - measured) / measured under c >= 0: one convex problem with one optimum, no start to choose.
class LossCurve {
 public:
  // `updates` rising, 1 or more, with the shares measured after them (> 0). The share 1 at 0
  // updates is added, unless the first one is above it. Where all are 0 the curve is 0 beyond 0.
  static LossCurve Fit(absl::Span<const std::int64_t> updates, absl::Span<const double> shares);

  double At(double updates) const;
  // What is not learnt within the updates that were made, as far as can be told: c_0 and the terms
  // slower than half of these.
  double Unlearnt() const { return unlearnt_; }
  // Root of the mean of the squared log residuals, over the degrees of freedom.
  double scatter() const { return scatter_; }

 private:
  std::vector<double> times_, shares_;  // shares_[0]: c_0, shares_[k]: of times_[k-1]
  double unlearnt_ = 0, scatter_ = 0;
};

// min |A x - b|^2 under x >= 0, by the active sets of Lawson and Hanson. `a` row-major, rows x
// columns. Exact to rounding; columns that depend on each other share no weight they need not.
std::vector<double> NonNegativeLeastSquares(absl::Span<const double> a, absl::Span<const double> b,
                                            int columns);

}  // namespace mergeplan::calibrate
