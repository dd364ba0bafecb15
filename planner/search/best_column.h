#pragma once

#include <functional>
#include <optional>

#include "planner/search/columns.h"

namespace mergeplan::search {

// The best plan for one target, where no plan's value comes out on the other side of tau: then the
// largest (or least) value is best, and the tables over intervals are the whole search
// (thm:pareto_dp_merge_optimal with frontiers of one point). nullopt where plans come out on both
// sides, or `stop` (may be empty) said true. O(T^3 + N T^2), memory O(T^2).
std::optional<Plan> BestPlanOfColumn(const Model& model, const Target& target, Shape shape,
                                     int blocks, int threads, const std::function<bool()>& stop);

}  // namespace mergeplan::search
