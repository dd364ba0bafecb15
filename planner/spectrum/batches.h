#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/data/samples.h"

namespace mergeplan {

// How many samples of so many dimensions a batch has.
int BatchRows(int dimensions);

// Are all values finite?
bool AllFinite(const float* values, std::size_t count);
bool AllFinite(const double* values, std::size_t count);

// Batches of BatchRows until the end, however the source cuts its own, as numbers of type T:
// double, or float where the source has a file whose values all fit (RowFile::fits_float). Rows of
// a plain file are read by `threads` threads at once; then the source does not move, unless a value
// is not finite: from the batch that holds it on, the source itself is asked, which knows what is
// to be done about it.
template <typename T>
class BatchReader {
 public:
  BatchReader(SampleSource& source, int dimensions, int threads);

  // Number of samples in the batch; 0 at the end. Errors of the source.
  absl::StatusOr<int> Next();
  absl::Span<const T> samples(int count) const {
    return absl::MakeConstSpan(buffer_).subspan(0, static_cast<std::size_t>(count) * d_);
  }
  int capacity() const { return rows_; }

 private:
  // False where a value is not finite.
  absl::StatusOr<bool> ReadFromFile(std::int64_t count);
  absl::StatusOr<int> ReadFromSource(int filled);

  SampleSource& source_;
  const RowFile* file_;  // null: ask the source
  const int d_;
  const int rows_;
  const int threads_;
  std::int64_t next_ = 0;  // row of the file
  std::vector<T> buffer_;
  std::vector<double> wide_;  // what the source said, where T is float
};

extern template class BatchReader<float>;
extern template class BatchReader<double>;

}  // namespace mergeplan
