#pragma once

#include <cstdint>
#include <vector>

#include "planner/spectrum/spectrum.h"

namespace mergeplan {

// What a basis's variances say beside themselves.
struct BasisFigures {
  double energy_above_one = 0;  // share of the total variance in dimensions with lambda > 1
  // Dimensions whose interval holds 1: on which side they lie these samples cannot tell.
  int undecided = 0;
  // log(lambda) over its standard error, d: how far each lies from the border, in standard errors.
  // 0 where lambda is 1; of unlimited size where there is no error (+-infinity, or a variance 0).
  std::vector<double> distance;
  // exp of the entropy of the variances' shares (Roy and Vetterli 2007), and (sum)^2 / sum of
  // squares: of how many dimensions the data looks like. 0 where there is no variance.
  double effective_rank = 0, participation_ratio = 0;
  // The number of normal samples that would know the variances as well, by their intervals:
  // smallest and median over the dimensions with variance; 0 where there is none.
  double effective_samples_least = 0, effective_samples_median = 0;
};
BasisFigures FiguresOf(const Basis& basis, double confidence);

// The least share of the dimensions to the samples at which sample eigenvalues are far from the
// true ones: above d / n = 1/10 shrinkage is worth it.
inline constexpr double kFewSamples = 0.1;

}  // namespace mergeplan
