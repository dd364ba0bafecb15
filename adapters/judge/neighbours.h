#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mergeplan::judge {

// How much of a set of samples lies in the manifold of another, both seen as features.
struct PrecisionRecall {
  double precision = 0;  // share of the generated ones inside the reference's manifold
  double recall = 0;     // share of the reference inside the generated ones' manifold
};

// Precision and recall by k nearest neighbours (Kynkaanniemi et al. 2019): the manifold of a set is
// the union of the closed balls around its members that reach to their k-th nearest other member.
// Sets of the same size compare best. Duplicates count as members of their own. INVALID_ARGUMENT
// unless both sets have more than k rows of finite numbers. O((n^2 + m^2 + n m) d) on one thread,
// O(n + m) memory beside the features.
absl::StatusOr<PrecisionRecall> NeighbourPrecisionRecall(absl::Span<const double> reference,
                                                         absl::Span<const double> generated,
                                                         int dimensions, int neighbours = 3);

}  // namespace mergeplan::judge
