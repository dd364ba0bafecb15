#include "adapters/encoding/count.h"

#include <algorithm>
#include <vector>

#include "planner/base/status_macros.h"

namespace mergeplan::encoding {

absl::StatusOr<std::int64_t> CountSamples(SampleSource& source, std::int64_t limit) {
  const std::int64_t d = source.dimensions();
  const std::int64_t most = std::max<std::int64_t>(1, (std::int64_t{1} << 16) / d);
  std::vector<double> rows(static_cast<std::size_t>(most * d));
  std::int64_t count = 0;
  while (count < limit) {
    const std::int64_t want = std::min(most, limit - count);
    MP_ASSIGN_OR_RETURN(
        const int got, source.Read(absl::MakeSpan(rows).first(static_cast<std::size_t>(want * d))));
    if (got == 0) break;
    count += got;
  }
  return count;
}

}  // namespace mergeplan::encoding
