#include "planner/plan/io/evaluate.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/operators/canonical.h"

namespace mergeplan {
namespace {

constexpr double kMostEntries = 0x1p28;

absl::Status CheckFinite(double number, const char* what) {
  if (std::isfinite(number)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " of the plan is ", number, ": the variances or weights are too large"));
}

}  // namespace

absl::StatusOr<Model> ModelOf(const PlanDocument& document) {
  const size_t levels =
      document.tables ? static_cast<size_t>(document.tables->steps) : document.alpha.size();
  if (static_cast<double>(levels) * document.dimensions() > kMostEntries) {
    return absl::ResourceExhaustedError(absl::StrCat(
        levels, " levels times ", document.dimensions(), " dimensions are more than the ",
        kMostEntries, " that a model's tables may have"));
  }
  if (document.tables) return Model::FromTables(*document.tables);
  ModelSpec spec;
  spec.schedule.spec = document.schedule_spec;
  spec.schedule.name = document.schedule_spec;
  spec.schedule.alpha = document.alpha;
  spec.schedule.sigma = document.sigma;
  spec.schedule.level_scale.assign(document.alpha.size(), 1.0);
  spec.schedule.data_scale = document.data_scale;
  spec.variances = document.variances;
  spec.weights = document.weights;
  spec.budget = document.budget;
  spec.init = document.init;
  spec.reference = document.reference;
  return Model::Create(std::move(spec));
}

absl::Status CheckHasSchedule(const PlanDocument& document, const std::string& path) {
  if (!document.tables) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      ": is a plan of bare tables (A, gamma), expected one made with a schedule, variances and a "
      "budget; make it without --tables"));
}

absl::StatusOr<StrategyFigures> FiguresOf(const Model& model, std::string name, const Plan& plan) {
  StrategyFigures out{std::move(name), model.Objective(plan), std::nullopt, plan.size(),
                      CostsOf(plan)};
  MP_RETURN_IF_ERROR(CheckFinite(out.objective, "the objective"));
  if (!model.has_schedule()) return out;
  out.objective_equal_total_time = out.objective;
  const int total = plan.teacher_steps() - plan.student_steps();
  if (plan.size() > 0 && plan.size() != total) {
    MP_ASSIGN_OR_RETURN(const Model shared,
                        model.WithBudget(model.budget().SharedOver(plan.size(), total)));
    out.objective_equal_total_time = shared.Objective(plan);
  }
  MP_RETURN_IF_ERROR(
      CheckFinite(*out.objective_equal_total_time, "the objective at equal total time"));
  return out;
}

absl::Status ComputeFigures(const Model& model, PlanDocument* document) {
  const Plan& plan = document->plan;
  MP_ASSIGN_OR_RETURN(const StrategyFigures own, FiguresOf(model, "plan", plan));
  document->objective = own.objective;
  document->objective_equal_total_time = own.objective_equal_total_time;
  document->value = model.Value(plan);
  document->tau.assign(model.tau().begin(), model.tau().end());
  document->objective_surrogate.reset();
  if (model.has_schedule()) {
    document->objective_surrogate = model.Objective(document->value, Reference::kSurrogate);
    MP_RETURN_IF_ERROR(CheckFinite(*document->objective_surrogate, "the surrogate objective"));
  }
  document->objective_teacher = model.Objective(document->value, Reference::kTeacher);
  document->tolerance = model.Tolerance(document->value);
  MP_RETURN_IF_ERROR(CheckFinite(document->objective_teacher, "the teacher objective"));
  MP_RETURN_IF_ERROR(CheckFinite(document->tolerance, "the tolerance"));

  document->strategies.clear();
  for (const Strategy strategy : kStrategies) {
    MP_ASSIGN_OR_RETURN(const Plan canonical,
                        CanonicalPlan(strategy, plan.teacher_steps(), plan.student_steps()));
    MP_ASSIGN_OR_RETURN(StrategyFigures figures,
                        FiguresOf(model, std::string(ToString(strategy)), canonical));
    document->strategies.push_back(std::move(figures));
  }
  return absl::OkStatus();
}

}  // namespace mergeplan
