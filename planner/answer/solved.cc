#include "planner/answer/solved.h"

#include <utility>

#include "planner/base/status_macros.h"
#include "planner/operators/canonical.h"
#include "planner/plan/io/evaluate.h"

namespace mergeplan {

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

absl::StatusOr<PlanDocument> DocumentOf(const Model& model, std::string input, std::string basis,
                                        const SearchResult& result, const SearchOptions& options) {
  PlanDocument document;
  document.input = std::move(input);
  document.space = options.space;
  document.max_merges = options.max_merges;
  document.max_rounds = options.max_rounds;
  if (model.has_schedule()) {
    document.schedule_spec = model.schedule().spec;
    document.alpha = model.schedule().alpha;
    document.sigma = model.schedule().sigma;
    document.data_scale = model.schedule().data_scale;
    document.input_sha256 = VariancesHash(model.spec().variances);
    document.basis = std::move(basis);
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

}  // namespace mergeplan
