#pragma once

#include <vector>

#include "absl/types/span.h"

namespace mergeplan {

// Hartigan and Hartigan's (1985) dip: the largest distance between the empirical distribution of
// `sorted` (ascending, at least one value) and the unimodal distribution that is nearest to it in
// that distance. Between 1 / (2 n) and 1/4; 0 where all values are alike.
//
// The nearest distribution is convex up to a modal interval and concave after it. Starting from the
// whole range, the interval shrinks to where the convex minorant and the concave majorant of the
// data inside it are farthest apart, until they are no farther apart than the data strays from them
// outside. O(n) each time, a few times in practice.
double Dip(absl::Span<const double> sorted);

// The share of samples of n uniform values (the unimodal law with the largest dips, asymptotically)
// whose dip is at least that large, from a table of simulated quantiles (dip_table.h); not below
// 1e-5, where the table ends. 1 for fewer than 8 values.
double DipPValue(double dip, double n);

}  // namespace mergeplan
