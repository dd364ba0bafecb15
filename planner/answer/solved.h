#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/operators/model.h"
#include "planner/plan/io/document.h"
#include "planner/search/search.h"

namespace mergeplan {

// The four canonical strategies, inside N equal blocks, under both budgets. O(T d).
absl::StatusOr<std::vector<StrategyFigures>> CanonicalFigures(const Model& model,
                                                              int student_steps);

// Everything that a plan file says of what a search has found. `input` and `basis` are where the
// model's variances come from (see PlanDocument). O(T d).
absl::StatusOr<PlanDocument> DocumentOf(const Model& model, std::string input, std::string basis,
                                        const SearchResult& result, const SearchOptions& options);

}  // namespace mergeplan
