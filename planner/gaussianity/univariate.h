#pragma once

#include "absl/types/span.h"

namespace mergeplan {

// Two-sided p-values of the sample skewness sqrt(n) m3 / m2^(3/2) and kurtosis n m4 / m2^2 of n
// independent values under normality: D'Agostino's (1970) and Anscombe and Glynn's (1983)
// transformations to a normal number. Fewer than 8 (skewness) and 20 (kurtosis) values cannot tell:
// 1.
double SkewnessPValue(double skewness, double n);
double KurtosisPValue(double kurtosis, double n);

// Sample skewness and kurtosis of values, 0 and 3 where they do not vary.
struct Shape {
  double mean = 0, deviation = 0, skewness = 0, kurtosis = 3;  // deviation divides by n
};
Shape ShapeOf(absl::Span<const double> values);

}  // namespace mergeplan
