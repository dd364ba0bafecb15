#pragma once

#include <cstdint>
#include <vector>

#include "planner/measured/tables.h"
#include "planner/plan/plan.h"
#include "tests/planner/measured/cases.h"

namespace mergeplan::oracle {

// The measured model as README.md of planner/measured states it, word by word, in long double, with
// look-ups for tables. Shares no code with planner/measured.
long double StudentError(const RandomCase& c, const Plan& plan,
                         const std::vector<std::int64_t>& updates, Combine combine);

struct Limits {
  int max_children = 0;
  int max_merges = 0;
};
bool Keeps(const Plan& plan, const Limits& limits);

// The least error of all plans with so many blocks, at the same updates per merge; negative where
// no plan keeps to the limits.
long double LeastError(const RandomCase& c, int blocks, std::int64_t updates, Combine combine,
                       const Limits& limits);

// The least error of one plan over all ways to share exactly `total` updates, at least one each;
// negative where there are too few.
long double LeastSharedError(const RandomCase& c, const Plan& plan, std::int64_t total,
                             Combine combine);
// The same over all plans.
long double LeastSharedError(const RandomCase& c, int blocks, std::int64_t total, Combine combine,
                             const Limits& limits);

}  // namespace mergeplan::oracle
