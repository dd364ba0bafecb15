#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/report/report.h"

namespace mergeplan {

// What the sections share, worked out once.
struct ReportFacts {
  // The plan of the report, or of its first strategy; null where there is only a spectrum.
  const PlanDocument* plan = nullptr;
  std::vector<double> tau;  // of the plan's reference; d values
  std::vector<double> tau_surrogate, tau_teacher;
  int best = -1;       // least achieved error; -1 where no strategy has a finite one
  int runner_up = -1;  // the next
};

// Checks that the parts of the report belong together (see RenderHtml) and computes the facts.
absl::StatusOr<ReportFacts> CheckInput(const ReportInput& input);

// Predicted objective of a strategy at equal total time, where it is known.
std::optional<double> EqualTotalTime(const StrategyResult& strategy, const ReportInput& input);

// "the surrogate", "the teacher", "the data".
std::string ReferenceWords(Reference reference);

// The one sentence on top: which strategy did best, predicted and achieved. HTML.
std::string Verdict(const ReportInput& input, const ReportFacts& facts);
// The paragraphs below it: both budgets, and whether the law holds. HTML; may be empty.
std::string VerdictDetails(const ReportInput& input, const ReportFacts& facts);

}  // namespace mergeplan
