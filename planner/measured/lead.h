#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/measured/model.h"
#include "planner/measured/plan_error.h"
#include "planner/measured/solve.h"

namespace mergeplan {

struct LeadOptions {
  int draws = 1000;  // 0..1'000'000; 0: intervals only
  std::uint64_t seed = 1;
};

// A canonical strategy beside the best plan, under the same budget and rule.
struct Rival {
  std::string name;
  Plan plan;
  std::vector<std::int64_t> updates;
  bool affordable = true;  // false: it has more merges than there are updates; nothing else holds
  bool allowed = true;     // false: it breaks max_children or max_merges, which the plan keeps to
  bool is_the_plan = false;
  ErrorRange error;
  // The plan's high end is below the rival's low end, so that no numbers within the intervals turn
  // the order around. Sufficient, not necessary: the two share numbers.
  bool certain = false;
  // Shares of the draws in which the plan is better, and as good.
  double better = 0;
  double equal = 0;
};

struct Lead {
  ErrorRange error;  // of the plan
  std::vector<Rival> rivals;
  LeadOptions options;
  // Share of the draws in which no rival that is allowed is better than the plan.
  double best_of_all = 0;
};

// The four strategies under the options' budget, with their errors; nothing about any plan's lead.
// INVALID_ARGUMENT as SolveMeasured has it for the student's steps.
absl::StatusOr<std::vector<Rival>> StrategiesOf(const MeasuredModel& model,
                                                const MeasuredOptions& options);

// How sure the plan's lead over vanilla, progressive, BOOT and consistency is (for N > 1 inside N
// equal blocks). Where a total of updates is shared, each rival shares it best for itself. Draws
// are those of MeasuredModel::Draw: they say how often the plan wins if the intervals are taken as
// ranges of chance; the plan and all updates stay as they are. Same seed, same figures.
// INVALID_ARGUMENT names a number of draws out of range. O(draws (entries + merges)).
absl::StatusOr<Lead> LeadOver(const MeasuredModel& model, const MeasuredOptions& options,
                              const MeasuredResult& result, const LeadOptions& lead_options);

}  // namespace mergeplan
