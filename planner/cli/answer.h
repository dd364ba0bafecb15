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
                                        const SearchOptions& options);

// What the schedule's file has notes on, on stderr.
void PrintNotes(const Model& model);
// What is assumed, in one or two lines on stdout.
void PrintAssumptions(const Question& question);

// What the linear model's answer is worth for a network, in a sentence.
std::string NetworkAdvice(Init init);

// The table strategy / error / error at equal total time / merges, rounds, calls, with the plan's
// own line last.
std::string FiguresTable(const std::vector<StrategyFigures>& rows);

}  // namespace mergeplan::cli
