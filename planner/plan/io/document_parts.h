#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/operators/budget.h"
#include "planner/plan/io/document.h"
#include "planner/plan/io/node.h"

// Parts of a plan file that are read by themselves.

namespace mergeplan::plan_io {

// train_time, or lr and iterations; batch and feature_norm.
absl::StatusOr<Budget> ReadBudget(const NodeReader& read, const Node& root);

// A figure of the certificate that needs a budget or a schedule: required, but of a plan of tables
// refused. `prefix` is the name of `table` in errors.
absl::StatusOr<std::optional<double>> ReadBudgetedFigure(const NodeReader& read, const Node& table,
                                                         std::string_view prefix,
                                                         std::string_view key, bool of_tables);

// The table of strategies, called `name` in errors.
absl::StatusOr<std::vector<StrategyFigures>> ReadStrategies(const NodeReader& read,
                                                            const Node& strategies,
                                                            const std::string& name,
                                                            bool of_tables);

}  // namespace mergeplan::plan_io
