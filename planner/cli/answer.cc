#include "planner/cli/answer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"
#include "planner/operators/canonical.h"
#include "planner/plan/io/evaluate.h"

namespace mergeplan::cli {

absl::StatusOr<std::vector<StrategyFigures>> CanonicalFigures(const Model& model,
                                                              int student_steps) {
  std::vector<StrategyFigures> out;
  for (Strategy strategy : kStrategies) {
    MP_ASSIGN_OR_RETURN(const Plan plan, CanonicalPlan(strategy, model.steps(), student_steps));
    MP_ASSIGN_OR_RETURN(StrategyFigures row,
                        FiguresOf(model, std::string(ToString(strategy)), plan));
    out.push_back(std::move(row));
  }
  return out;
}

absl::StatusOr<PlanDocument> DocumentOf(const Question& question, const SearchResult& result,
                                        Space space) {
  const Model& model = question.model;
  PlanDocument document;
  document.input = question.input;
  document.space = space;
  if (model.has_schedule()) {
    document.schedule_spec = model.schedule().spec;
    document.alpha = model.schedule().alpha;
    document.sigma = model.schedule().sigma;
    document.data_scale = model.schedule().data_scale;
    document.input_sha256 = VariancesHash(model.spec().variances);
    document.basis = question.basis;
    document.variances = model.spec().variances;
    document.weights = model.spec().weights;
    document.budget = model.budget();
    document.init = model.init();
    document.reference = model.reference();
  } else {
    document.tables = model.tables();
  }

  document.plan = result.plan;
  document.value = model.Value(result.plan);
  document.tau.assign(model.tau().begin(), model.tau().end());
  document.objective = result.objective;
  if (model.has_schedule())
    document.objective_surrogate = model.Objective(document.value, Reference::kSurrogate);
  document.objective_teacher = model.Objective(document.value, Reference::kTeacher);
  MP_ASSIGN_OR_RETURN(const StrategyFigures own, FiguresOf(model, "plan", result.plan));
  document.objective_equal_total_time = own.objective_equal_total_time;
  document.lower_bound = result.lower_bound;
  document.tolerance = result.tolerance;
  document.status = std::string(ToString(result.status));
  document.guarantee = result.guarantee;
  MP_ASSIGN_OR_RETURN(document.strategies, CanonicalFigures(model, result.plan.student_steps()));
  document.seconds = result.seconds;
  return document;
}

std::string FiguresTable(const std::vector<StrategyFigures>& rows) {
  const bool budgets = std::any_of(rows.begin(), rows.end(), [](const StrategyFigures& row) {
    return row.objective_equal_total_time.has_value();
  });
  if (!budgets) {  // of tables
    std::string out = absl::StrFormat("%-14s %14s %8s\n", "strategy", "objective", "merges");
    for (const StrategyFigures& row : rows) {
      absl::StrAppendFormat(&out, "%-14s %14.6e %8d\n", row.name, row.objective,
                            row.merges_trained);
    }
    return out;
  }
  std::string out = absl::StrFormat("%-14s %14s %20s %8s\n", "strategy", "same per merge",
                                    "same total time", "merges");
  for (const StrategyFigures& row : rows) {
    const std::string equal = row.objective_equal_total_time
                                  ? absl::StrFormat("%.6e", *row.objective_equal_total_time)
                                  : "-";
    absl::StrAppendFormat(&out, "%-14s %14.6e %20s %8d\n", row.name, row.objective, equal,
                          row.merges_trained);
  }
  return out;
}

}  // namespace mergeplan::cli
