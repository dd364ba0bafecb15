#include "planner/cli/answer.h"

#include <algorithm>
#include <cstdio>
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
                                        const SearchOptions& options) {
  const Model& model = question.model;
  PlanDocument document;
  document.input = question.input;
  document.space = options.space;
  document.max_merges = options.max_merges;
  document.max_rounds = options.max_rounds;
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

void PrintNotes(const Model& model) {
  if (!model.has_schedule()) return;
  for (const std::string& note : model.schedule().notes)
    std::fprintf(stderr, "note: %s\n", note.c_str());
}

void PrintAssumptions(const Question& question) {
  const Model& model = question.model;
  if (!model.has_schedule()) {
    std::printf("%d dimensions, %d teacher steps, tables of %s\n", model.dimensions(),
                model.steps(), question.input.c_str());
    return;
  }
  std::printf("%d dimensions (basis %s), %d teacher steps, schedule %s\n", model.dimensions(),
              question.basis.c_str(), model.steps(), model.schedule().spec.c_str());
  std::printf("students start as %s, train by %s, are compared with the %s\n",
              std::string(ToString(model.init())).c_str(), model.budget().ToString().c_str(),
              std::string(ToString(model.reference())).c_str());
}

std::string NetworkAdvice(Init init) {
  if (init == Init::kChild || init == Init::kTeacher) {
    return absl::StrFormat(
        "a network behind a DDIM wrapper does not start as %s, so do not take this for one: ask "
        "with --init child-jump, or --init jump where every merge starts from the teacher",
        std::string(ToString(init)));
  }
  return absl::StrFormat(
      "in the linear model the start %s has one best strategy for all data; networks differ by "
      "what that "
      "model leaves out, so measure before deciding (plan --measured)",
      std::string(ToString(init)));
}

std::string FiguresTable(const std::vector<StrategyFigures>& rows) {
  const bool budgets = std::any_of(rows.begin(), rows.end(), [](const StrategyFigures& row) {
    return row.objective_equal_total_time.has_value();
  });
  std::string out =
      absl::StrFormat("%-14s %14s", "strategy", budgets ? "same per merge" : "objective");
  if (budgets) absl::StrAppendFormat(&out, " %16s", "same total time");
  absl::StrAppendFormat(&out, " %7s %7s %14s %14s\n", "merges", "rounds", "teacher calls",
                        "student calls");
  for (const StrategyFigures& row : rows) {
    absl::StrAppendFormat(&out, "%-14s %14.6e", row.name, row.objective);
    if (budgets) {
      absl::StrAppendFormat(&out, " %16s",
                            row.objective_equal_total_time
                                ? absl::StrFormat("%.6e", *row.objective_equal_total_time)
                                : "-");
    }
    const PlanCosts costs = row.costs.value_or(PlanCosts{});
    absl::StrAppendFormat(&out, " %7d %7d %14d %14d\n", row.merges_trained, costs.rounds,
                          costs.teacher_calls, costs.student_calls);
  }
  return out;
}

}  // namespace mergeplan::cli
