#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/gaussianity/directions.h"

namespace mergeplan {

// One direction, found on half of the samples and looked at on the other half, so that p-values are
// those of a direction fixed beforehand.
struct Projection {
  std::string kind;  // "principal", "random" or "pursuit"
  int number = 0;    // within its kind, from 1
  double skewness = 0, skewness_p = 1;
  double kurtosis = 3, kurtosis_p = 1;
  double dip = 0, dip_p = 1;
};

// A mixture fitted to one half in few coordinates and tried on the other.
struct MixtureEvidence {
  int dimensions = 0;  // coordinates: leading principal directions and pursued ones
  int components = 1;  // of the least BIC
  std::string covariance = "full";
  double bic_gain = 0;  // of that over one component, on the half it was fitted to
  // The same on the other half: mean gain of log density per sample over its standard error.
  double held_out_gain = 0;
  // Components nearer than kSeparation to each other, perhaps by way of others, are one group. How
  // many groups of at least kLeastShare there are; the least distance between two of them
  // (Mahalanobis, between centres, by the mean of both covariances) and the share of the lighter.
  int groups = 1;
  double separation = 0, share = 0;
  // Dip test along the line through two components of different groups, on samples of the other
  // half around that line; the smallest over all such pairs, Bonferroni.
  double valley_p = 1;
};

struct ModesReport {
  std::vector<Projection> projections;
  double skewness_p = 1, kurtosis_p = 1, dip_p = 1;  // smallest after Holm within each kind of test
  int dip_at = -1;                                   // projection of the smallest dip p-value
  MixtureEvidence mixture;
  bool by_dip = false;      // the dip test finds more than one mode
  bool by_mixture = false;  // components far apart, with a valley between
  bool multimodal() const { return by_dip || by_mixture; }
};

struct ModesOptions {
  double level = 0.01;
  std::uint64_t seed = 1;
  int principal = 10, random = 10, pursuit = 6;
};

// Separation from which components count as modes: two equal ones have two modes from 2 on, and the
// fitted distance of ones 3 apart is rarely less than this.
inline constexpr double kSeparation = 2.4;
inline constexpr double kLeastShare = 0.02;

// `rows` is n x d; directions without variance are left out. Fewer than 100 rows cannot tell.
// RESOURCE_EXHAUSTED; errors of FitMixture.
absl::StatusOr<ModesReport> LookForModes(const RowMatrix& rows, const ModesOptions& options);

}  // namespace mergeplan
