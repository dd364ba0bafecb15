#pragma once

#include <string>

#include "absl/status/status.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {

// Linear shrinkage towards a multiple of the identity, C = (1 - rho) S + rho (tr S / d) I: with few
// samples for the dimensions the largest eigenvalues of S are too large and the smallest too small,
// and C is nearer to the truth in mean square. All intensities lie in [0, 1], those of a spectrum
// with no more than one dimension, or whose S is a multiple of I already, at 1 (nothing changes).

// The oracle-approximating estimate of Chen, Wiesel, Eldar and Hero (2010), their equation 23; for
// normal data. Needs the spectrum's covariance and number of samples. O(d^2).
double OasIntensity(const Spectrum& spectrum);

// That of Ledoit and Wolf (2004), for any distribution with fourth moments; `fourth_norm` is the
// mean of |x - mean|^4 over the samples, in data units. O(d^2).
double LedoitWolfIntensity(const Spectrum& spectrum, double fourth_norm);

// Applies it to covariance and variances, their intervals and the off-diagonal energies. The
// intervals then are those of the shrunk quantity: they do not hold the bias. O(d^2).
void Shrink(Spectrum& spectrum, const std::string& rule, double intensity);

// INVALID_ARGUMENT unless none, oas or ledoit-wolf.
absl::Status CheckShrinkageRule(const std::string& rule);

}  // namespace mergeplan
