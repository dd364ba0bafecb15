#pragma once

#include <utility>
#include <vector>

namespace mergeplan::oracle {

using PlainMatrix = std::vector<std::vector<long double>>;  // square

// |m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2)) in long double, the root of the product by the
// iteration of Denman and Beavers, matrices inverted by elimination. Both covariances must be
// positive definite. O(d^3) an iteration.
long double PlainFrechet(const std::vector<double>& mean1, const PlainMatrix& covariance1,
                         const std::vector<double>& mean2, const PlainMatrix& covariance2);

// Precision and recall by k nearest neighbours: all distances, each list sorted.
std::pair<double, double> PlainPrecisionRecall(const std::vector<std::vector<double>>& reference,
                                               const std::vector<std::vector<double>>& generated,
                                               int k);

}  // namespace mergeplan::oracle
