#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/operators/model.h"
#include "planner/operators/regimes.h"
#include "planner/plan/io/document.h"

namespace mergeplan::cli {

// Which of the paper's strategies to take for data of these variances, and why. Joins spectrum and
// linear model; it speaks of linear students only.
struct Advice {
  std::string strategy;                  // of the four: proven best, or of the least objective
  std::string reason;                    // one or two sentences
  std::string network;                   // what that is worth for a network, one sentence
  bool proven = false;                   // by a theorem (planner/operators/THEOREMS.md)
  std::vector<StrategyFigures> figures;  // all four, under both budgets
  std::vector<VarianceRegime> regimes;   // d
  Lambda0Range lambda0;
};

absl::StatusOr<Advice> Advise(const Model& model, int student_steps);

}  // namespace mergeplan::cli
