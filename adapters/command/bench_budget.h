#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/runtime/bench_row.h"

namespace mergeplan {

// What strategies may spend: --budget both,updates=320,calls=2e6,minutes=60.
struct BenchBudget {
  bool per_merge = true, total = true;   // which comparisons
  std::optional<std::int64_t> updates;   // of a merge: what --iterations is
  std::optional<double> calls, minutes;  // limits of the whole comparison
};

// Words with commas: per-merge, total or both (the default), and updates=N, calls=X, minutes=X,
// each once. Misuse says what was found.
absl::StatusOr<BenchBudget> ParseBenchBudget(const std::string& text);

// Which limits a forecast is above, in words.
std::vector<std::string> AboveLimits(const BenchBudget& budget, const BenchForecast& forecast);

}  // namespace mergeplan
