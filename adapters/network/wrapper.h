#pragma once

#include "absl/status/statusor.h"
#include "adapters/network/signature.h"
#include "planner/schedule/schedule.h"

namespace mergeplan::network {

// The DDIM wrapper around a network at level j that lands at a cleaner level l:
//
//   z_l = alpha_l x0 + sigma_l eps = state * z_j + output * F
//
// where F is the network's output and x0, eps are what it says about z_j = alpha_j x0 + sigma_j eps
// (both in the schedule's coordinates, F in native ones). With F = a eps + b x0 and
// D(l, j) = alpha_l sigma_j - alpha_j sigma_l:
//
//   state = (alpha_l a - sigma_l b) / (alpha_j a - sigma_j b),  output = -D / (alpha_j a - sigma_j
//   b)
//
//   epsilon       a = 1, b = 0
//   sample        a = 0, b = data_scale
//   v_prediction  a : -b = alpha_j sigma_data^2 : sigma_j data_scale^2 (see Prediction)
//   flow          a = 1, b = -data_scale
struct Landing {
  double state = 1;
  double output = 0;
};

// F = noise * eps + data * x0 at a level, x0 in the schedule's coordinates: what the network is
// trained to give there.
struct OutputMix {
  double noise = 0;  // a
  double data = 0;   // b
};
// INVALID_ARGUMENT for epsilon at a level without signal (alpha/sigma below 1e-6: zero terminal
// SNR), where epsilon says nothing about x0. So are the two below.
absl::StatusOr<OutputMix> OutputAt(const Signature& signature, const Schedule& schedule, int level);

// `to` < `from`, levels of the schedule.
absl::StatusOr<Landing> LandingAt(const Signature& signature, const Schedule& schedule, int from,
                                  int to);
// x0 in the schedule's coordinates = state * z_j + output * F.
absl::StatusOr<Landing> EstimateAt(const Signature& signature, const Schedule& schedule, int from);

// The DDIM step in terms of what a landing implies: x0 = (sigma_j z_l - sigma_l z_j) / D(l, j).
// The derivative of x0 by z_l, sigma_j / D(l, j).
double EstimatePerLanding(const Schedule& schedule, int from, int to);

}  // namespace mergeplan::network
