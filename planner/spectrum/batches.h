#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/data/samples.h"

namespace mergeplan {

// Batches of one size until the end, however the source cuts its own. Rows of a plain file are read
// by `threads` threads at once; then the source does not move, unless a value is not finite: from
// the batch that holds it on, the source itself is asked, which knows what is to be done about it.
class BatchReader {
 public:
  BatchReader(SampleSource& source, int dimensions, int threads);

  // Number of samples in the batch; 0 at the end. Errors of the source.
  absl::StatusOr<int> Next();
  absl::Span<const double> samples(int count) const {
    return absl::MakeConstSpan(buffer_).subspan(0, static_cast<std::size_t>(count) * d_);
  }
  int capacity() const { return rows_; }

 private:
  // Nothing where a value is not finite.
  absl::StatusOr<bool> ReadFromFile(std::int64_t count);

  SampleSource& source_;
  const RowFile* file_;  // null: ask the source
  const int d_;
  const int rows_;
  const int threads_;
  std::int64_t next_ = 0;  // row of the file
  std::vector<double> buffer_;
};

}  // namespace mergeplan
