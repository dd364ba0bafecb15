#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/calibrate/measurements.h"
#include "planner/measured/tables.h"

namespace mergeplan::calibrate {

struct FitOptions {
  std::int64_t iterations = 0;    // updates per merge that the tables must know
  std::int64_t most_updates = 0;  // the most that one merge may get (a total shared out)
};

// What a fitted merge of single steps is like, in native root mean squares.
struct FittedMerge {
  Range range;
  double distance = 0;   // g, from the teacher's own weights
  double after = 0;      // the error after the updates of its pilots
  double asymptote = 0;  // what the curve does not learn within them
  double floor = 0;      // f
  int replicates = 0;
  double scatter = 0;  // of log errors around the curve
};

struct Fit {
  MeasuredTables tables;            // of one rule
  std::vector<FittedMerge> merges;  // children-free, by length and place
  // The part of what is not learnt that belongs to the merge, whatever it starts from; the rest
  // shrinks with the distance. From merges over merges; 1 where there are none.
  double floor_share = 1;
  double floor_share_low = 1, floor_share_high = 1;  // that the same merges leave possible
  bool floor_share_measured = false;
  double spread = 0;       // standard deviation of log errors from one training to the next
  int spread_freedom = 0;  // 0: replicates are missing, and it is the scatter around the curves
  double gain_slope = 0;   // log of what gains of trained errors have over those of starts, at T-1
  double gain_spread = 0;
  std::int64_t pilot_updates = 0;
};

// Fills the measured model for one rule (README.md has the formulas). FAILED_PRECONDITION where a
// merge that the tables need has not been measured.
absl::StatusOr<Fit> FitTables(const Measurements& m, Combine combine, const FitOptions& options);

// Have all merges that the tables need been measured?
bool CanFit(const Measurements& m);

// The 97.5 % point of Student's law.
double StudentQuantile(int freedom);

}  // namespace mergeplan::calibrate
