#pragma once

#include <string>
#include <vector>

#include "planner/cli/question.h"
#include "planner/plan/io/document.h"

namespace mergeplan::cli {

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
