#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/noise/noise.h"

namespace mergeplan {

// Which sums are wanted: of the streams of merges, of the rows row_begin .. row_end - 1 of batches
// of `rows` rows of d numbers.
struct UnitSumsShape {
  std::vector<StreamName> names;
  std::int64_t d = 0, rows = 0, row_begin = 0, row_end = 0;
};

// Sums of squares of unit noise, computed elsewhere than by the loops of BatchSums. The noise is
// the same, digit by digit; sums are in float64 and in an order of their own, so they agree to
// rounding.
class UnitSums {
 public:
  virtual ~UnitSums() = default;
  // sums[(i count + u) d + k] = the sum over the rows of the square of number (row d + k) of update
  // first + u of merge i.
  virtual absl::Status Sum(std::uint64_t first, std::int64_t count, double* sums) = 0;
};

// Makes one where training takes place; null: the processor's own loops.
using OpenUnitSums =
    std::function<absl::StatusOr<std::unique_ptr<UnitSums>>(const UnitSumsShape& shape)>;

// By kernels on a visible CUDA device, from 0. UNAVAILABLE where there is none.
absl::StatusOr<std::unique_ptr<UnitSums>> CudaUnitSums(const UnitSumsShape& shape, int device);
// The kernels' threads as loops, for tests.
std::unique_ptr<UnitSums> EmulatedUnitSums(const UnitSumsShape& shape);

}  // namespace mergeplan
