#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "planner/report/report.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {

// The variances of both bases, each sorted from the largest, on a log scale with their confidence
// bands and the line lambda = 1, which lies at the native variance `one` (data_scale^2). Variances
// that are not positive have no place and are counted by PositiveVariances. O(d log d).
std::string SpectrumChart(const Spectrum& spectrum, double one);
int PositiveVariances(const Basis& basis);
// Those that are drawn: `diagonal`, and `pca` where it was computed, else `dct` where that was.
std::vector<const Basis*> BasesOf(const Spectrum& spectrum);
// "as stored", "along the principal axes", "along the cosine transform’s axes".
std::string Along(const Basis& basis);

// Predicted and achieved error of every strategy, one row each, on a common log scale: ring =
// predicted at the mean of the law, bar = its mean with SGD noise ± spread, diamond = achieved.
std::string ErrorChart(absl::Span<const StrategyResult> strategies);

// Signed error V - tau of one strategy, predicted (x) against achieved (y), one dot per dimension,
// with the diagonal. Of more than 4,000 dimensions those with the largest errors are drawn.
std::string ErrorScatter(const StrategyResult& strategy, absl::Span<const double> tau);

// Several vectors as lines over their index, for data that is no picture.
std::string VectorChart(const std::string& title, const std::vector<std::vector<double>>& lines,
                        double low, double high);

// Rows of d numbers (row-major) as dots over the first two of them (over the first, and the same
// again, where d is 1); `shown` on top of `reference`, whose extent counts. Up to 2,000 rows.
std::string SampleScatter(const std::string& title, absl::Span<const double> reference,
                          absl::Span<const double> shown, int d);

// The colours of the heatmap from -limit to +limit.
std::string ColourBar(double limit);

// Samples of the marks used in the legends.
std::string LegendKey(
    const std::string& mark);  // "one", "two", "rule", "ring", "spread", "achieved"

}  // namespace mergeplan
