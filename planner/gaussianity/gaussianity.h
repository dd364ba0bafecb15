#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/gaussianity/mardia.h"
#include "planner/gaussianity/modes.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {

// Skewness and kurtosis along every axis of one basis, over all samples.
struct AxisTests {
  std::string basis;
  // Axes with variance, whose fourth moments fit into float64, of samples that are enough for a
  // test.
  int tested = 0;
  int skewness_rejected = 0, kurtosis_rejected = 0;  // at the level, after Holm over both
  double smallest_p = 1;                             // after Holm over both
  double largest_skewness = 0;                       // of the largest size, with its sign
  double least_kurtosis = 3, largest_kurtosis = 3;
};

struct Gaussianity {
  double level = 0.01;
  std::int64_t rows = 0;        // kept samples that Mardia's and the projections' tests saw
  std::vector<AxisTests> axes;  // of each basis with measured moments
  Mardia mardia;                // over the leading principal directions
  ModesReport modes;
  // The smallest p-value of all tests: Holm within every kind of test, Bonferroni over the kinds.
  double p = 1;
  bool rejected = false;  // p < level: not normal
  // "gaussian", "not-gaussian", "multimodal", or "untested" where no test could be made (p is 1).
  std::string verdict;
  std::string words;  // what that means, one or two sentences
};

struct GaussianityOptions {
  double level = 0.01;
  std::uint64_t seed = 1;
};

// Is the data normal, and if not, has it several modes? `rows` (n x d, row-major) are samples as
// stored, all or a random part of those behind the spectrum (reservoir.h); used up.
//
// "gaussian" says that nothing here tells it from normal data: with few samples that is little, and
// with fewer than 8, or without variance, it is "untested", with the reason in words.
// With very many samples no real data is normal, so `axes` and `words` say how far it is from it,
// too. "multimodal" has two ways: the dip test along directions found on other samples, valid
// whatever the shape of a single mode; or a Gaussian mixture of well separated components that fits
// samples it has not seen. INVALID_ARGUMENT where the rows are no whole samples;
// RESOURCE_EXHAUSTED.
absl::StatusOr<Gaussianity> TestGaussianity(const Spectrum& spectrum, std::vector<double> rows,
                                            const GaussianityOptions& options);

}  // namespace mergeplan
