#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cli/question.h"
#include "planner/plan/io/document.h"
#include "planner/search/search.h"

namespace mergeplan::cli {

// The four canonical strategies, inside N equal blocks, under both budgets.
absl::StatusOr<std::vector<StrategyFigures>> CanonicalFigures(const Model& model,
                                                              int student_steps);

// Everything that a plan file says.
absl::StatusOr<PlanDocument> DocumentOf(const Question& question, const SearchResult& result,
                                        Space space);

// The table strategy / error / error at equal total time / merges, with the plan's own line last.
std::string FiguresTable(const std::vector<StrategyFigures>& rows);

}  // namespace mergeplan::cli
