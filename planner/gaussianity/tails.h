#pragma once

#include <vector>

#include "absl/types/span.h"

namespace mergeplan {

// P(|N(0,1)| >= |z|) and P(N(0,1) >= z).
double NormalTwoSided(double z);
double NormalUpper(double z);
// P(chi^2 with `freedom` degrees of freedom >= x), x >= 0, freedom > 0.
double ChiSquaredUpper(double x, double freedom);
// Holm's step-down adjustment: p-values that can be compared with one level for the whole family,
// whatever the dependence between them. In the order given. O(m log m).
std::vector<double> HolmAdjusted(absl::Span<const double> p_values);

}  // namespace mergeplan
