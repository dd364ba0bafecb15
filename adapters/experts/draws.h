#pragma once

#include <cstddef>
#include <cstdint>

#include "planner/mixture/row_numbers.h"
#include "planner/mixture/row_step.h"

// What is drawn for one row or slice, for the processor's loops and a device's threads.
namespace mergeplan::experts {

// What a stream of numbers is for; with the seed it names the stream. (0 is the initial
// parameters'.)
enum class Stream : std::uint32_t { kTraining = 1, kPool = 2, kHeldOut = 3, kLevels = 4 };

// A level for slice `slice` of `slices` in an update: uniform in the slice's share of the levels
// 1..levels, so that an update covers them all.
MERGEPLAN_HOST_DEVICE int PickLevel(int levels, std::uint64_t seed, std::uint64_t update, int slice,
                                    int slices) {
  mixture::RowNumbers numbers(
      seed, static_cast<std::uint32_t>(Stream::kLevels),
      update * static_cast<std::uint64_t>(slices) + static_cast<std::uint64_t>(slice));
  const double place = (slice + numbers.NextUniform()) / slices;  // in (0, 1)
  const int level = static_cast<int>(place * levels);
  return 1 + (level < levels - 1 ? level : levels - 1);
}

// Data and the level that rows of it are brought to.
struct DataTables {
  const double* rows = nullptr;  // count x d
  std::size_t count = 0, d = 0;
  double alpha = 1, sigma = 0;
};

// z = alpha x0 + sigma eps: a row of the data at random and noise.
MERGEPLAN_HOST_DEVICE void DrawFromData(const DataTables& data, mixture::RowNumbers& numbers,
                                        mixture::Lane z) {
  const auto drawn =
      static_cast<std::size_t>(numbers.NextUniform() * static_cast<double>(data.count));
  const double* x0 = data.rows + (drawn < data.count ? drawn : data.count - 1) * data.d;
  for (std::size_t j = 0; j < data.d; ++j) {
    z[j] = data.alpha * x0[j] + data.sigma * numbers.NextNormal();
  }
}

}  // namespace mergeplan::experts
