#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/data/samples.h"
#include "planner/spectrum/kernels.h"

namespace mergeplan {

// Means and sums of the 2nd, 3rd and 4th powers of the deviations from them, d each.
struct DiagonalMoments {
  std::int64_t count = 0;
  std::vector<double> mean, m2, m3, m4;

  // As MomentAccumulator has them.
  std::vector<double> Skewness() const;
  std::vector<double> Kurtosis() const;
};

// The moments along the data's own axes of all rows of a source whose rows lie in a plain file:
// every thread sums rows of its own in one pass, without a copy where they lie as float or double,
// so that nothing but the file's speed is the limit.
// Nothing where the source has no such rows, or where a value is not finite: then the samples must
// be read one after another, which says which one that is. The source itself does not move.
//
// The result does not depend on the number of threads; between kernels it differs by rounding.
// Time: n d, no more than reading the file. Memory: 64 d numbers, and for each thread 512 KiB, or 8
// MiB of the file that others can have back. Errors of RowFile::Read; RESOURCE_EXHAUSTED.
absl::StatusOr<std::optional<DiagonalMoments>> ReadDiagonalMoments(const SampleSource& source,
                                                                   int d, int threads,
                                                                   const Kernels& kernels);

}  // namespace mergeplan
