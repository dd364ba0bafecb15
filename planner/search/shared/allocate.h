#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "planner/search/shared/tree.h"

namespace mergeplan::search {

// How the merges of a plan share the total, and how good that is known to be.
struct Allocation {
  std::vector<double> shares;  // M numbers >= 0, sum 1
  double objective = 0;
  // max over allocations y of grad F(x)·(x - y) = grad F(x)·x - min_m dF/dx_m >= 0, in units of the
  // objective: 0 exactly where the conditions of Karush, Kuhn and Tucker hold. Where F is convex no
  // allocation is better than objective - stationarity (see borders.h for when it is).
  double stationarity = 0;
};

// The nearest point of the simplex {x >= 0, sum x = 1}. O(M log M).
void ProjectOntoSimplex(std::vector<double>& x);

// Descends from `start` (on the simplex) to a stationary point of log(F + floor), the same as of F:
// the logarithm makes one scale of errors that fall exponentially. Spectral projected gradient
// (steps of Barzilai and Borwein) with a line search that lets the objective rise now and then and
// keeps the best point. Ends where the first-order gain is below `tolerance` relative to F, after
// so many evaluations, or where `stop` (may be empty) says true. Deterministic.
Allocation Descend(SharedTree& tree, std::vector<double> start, int evaluations, double tolerance,
                   double floor, const std::function<bool()>& stop);

// Starting points for a plan: all to the blocks' top merges (by their number of steps), equal
// shares, shares by the number of steps, and all to the merges without merged children.
std::vector<std::vector<double>> StartingShares(const Plan& plan);

// Descends, and then shares anew what pairs of merges have together, down to nothing for one of
// them, and descends from there as long as that helps (pairs only where M^2 <= evaluations): where
// merges have more training than they need, descent alone sees no slope.
Allocation Polish(SharedTree& tree, Allocation from, int evaluations, double tolerance,
                  double floor, const std::function<bool()>& stop);

// The best of descents from several starts: StartingShares and `more`, each with `evaluations`, the
// best of them then polished with ten times as many.
Allocation Allocate(SharedTree& tree, absl::Span<const std::vector<double>> more, int evaluations,
                    double floor, const std::function<bool()>& stop);

// Integers for SGD.
struct Updates {
  std::vector<std::int64_t> updates;  // M numbers >= 0, sum K
  double objective = 0;
  // Does no move of one update from one merge to another lower the objective? False where there are
  // too many pairs to try all, or `stop` said true; then the most promising were tried.
  bool exchanged = false;
};

// Rounds shares by largest remainder, then moves updates from merge to merge (2^k of them, ... , 2,
// 1) as long as a move lowers the objective.
Updates RoundToUpdates(SharedTree& tree, absl::Span<const double> shares, std::int64_t total,
                       const std::function<bool()>& stop);

}  // namespace mergeplan::search
