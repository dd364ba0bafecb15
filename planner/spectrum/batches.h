#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "planner/base/status_macros.h"
#include "planner/data/samples.h"

namespace mergeplan {

// Batches of one size until the end, however the source cuts its own.
class BatchReader {
 public:
  BatchReader(SampleSource& source, int dimensions)
      : source_(source),
        d_(dimensions),
        rows_(std::clamp((1 << 20) / dimensions, 256, 8192)),
        buffer_(static_cast<std::size_t>(rows_) * dimensions) {}

  // Number of samples in the batch; 0 at the end.
  absl::StatusOr<int> Next() {
    int filled = 0;
    while (filled < rows_) {
      const std::size_t begin = static_cast<std::size_t>(filled) * d_;
      MP_ASSIGN_OR_RETURN(const int got, source_.Read(absl::MakeSpan(buffer_).subspan(begin)));
      if (got == 0) break;
      if (got < 0 || got > rows_ - filled) {
        return absl::InternalError(absl::StrCat("the reader returned ", got, " samples where ",
                                                rows_ - filled, " were asked for"));
      }
      filled += got;
    }
    return filled;
  }
  absl::Span<const double> samples(int count) const {
    return absl::MakeConstSpan(buffer_).subspan(0, static_cast<std::size_t>(count) * d_);
  }
  int capacity() const { return rows_; }

 private:
  SampleSource& source_;
  const int d_;
  const int rows_;
  std::vector<double> buffer_;
};

}  // namespace mergeplan
