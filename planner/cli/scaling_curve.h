#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/operators/model.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::cli {

// What becomes of regime and answer where the data is multiplied by `factor`: that moves every
// variance by its square.
struct CurvePoint {
  double factor = 1;
  std::string mark;  // "as it is", "unit variance" or empty
  Regime regime = Regime::kLow;
  double fraction_above_one = 0, energy_above_one = 0;
  // With a model only.
  std::string strategy;  // recommended
  bool proven = false;
  double objective = 0;  // its predicted error
  // The planner's own plan, searched for at most a moment.
  double plan_objective = 0, plan_lower_bound = 0;
  int plan_merges = 0;
};

struct CurveOptions {
  double low = 0.125, high = 8;  // range of factors, `points` of them evenly on the log scale
  int points = 25;
  double unit_variance = 0;  // that factor is added where it is > 0
  int student_steps = 1;
  double seconds_each = 0.3;  // of the search, at every factor
};

// `spec` holds schedule, budget, start and reference; its variances are set here. Null: no model.
// Errors of Model::Create, with the factor named.
absl::StatusOr<std::vector<CurvePoint>> ScalingCurve(const Basis& basis, const ModelSpec* spec,
                                                     const CurveOptions& options);

// "LOW:HIGH" with 0 < LOW < HIGH.
absl::Status ParseRange(const std::string& text, CurveOptions& options);

nlohmann::ordered_json CurveJson(const std::vector<CurvePoint>& curve);
std::string CurveText(const std::vector<CurvePoint>& curve);

}  // namespace mergeplan::cli
