#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/operators/model.h"
#include "planner/plan/io/document.h"

namespace mergeplan {

// The model of the question that a document asks. Errors as Model::Create, and
// RESOURCE_EXHAUSTED above 2^28 table entries (T times d).
absl::StatusOr<Model> ModelOf(const PlanDocument& document);

// INVALID_ARGUMENT for a document of tables, for those that need its schedule, variances or budget.
absl::Status CheckHasSchedule(const PlanDocument& document, const std::string& path);

// Computes objective, objective_surrogate, objective_teacher, objective_equal_total_time,
// tolerance, value, tau and the four canonical strategies of the document's plan; leaves
// lower_bound, status, guarantee and seconds alone. INVALID_ARGUMENT where the model refuses the
// question or a result overflows. O(T d) per strategy.
absl::Status ComputeFigures(const Model& model, PlanDocument* document);

// The figures of one plan under both budgets (of tables, as they are).
absl::StatusOr<StrategyFigures> FiguresOf(const Model& model, std::string name, const Plan& plan);

}  // namespace mergeplan
