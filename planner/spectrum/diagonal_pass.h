#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/data/samples.h"

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
// every thread reads and sums rows of its own, so that nothing but the file's speed is the limit.
// Nothing where the source has no such rows, or where a value is not finite: then the samples must
// be read one after another, which says which one that is. The source itself does not move.
//
// The result does not depend on the number of threads. Time: n d, no more than reading the file.
// Memory: 64 d numbers, and 256 KiB for each thread. Errors of RowFile::Read; RESOURCE_EXHAUSTED.
absl::StatusOr<std::optional<DiagonalMoments>> ReadDiagonalMoments(const SampleSource& source,
                                                                   int d, int threads);

}  // namespace mergeplan
