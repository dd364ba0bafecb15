#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/operators/budget.h"
#include "planner/operators/terms.h"
#include "planner/plan/plan.h"
#include "planner/schedule/schedule.h"

namespace mergeplan {

// One canonical strategy (or the plan itself) under both budgets.
struct StrategyFigures {
  std::string name;
  double objective = 0;  // same time per merge
  double objective_equal_total_time =
      0;  // same time in all: what BOOT spends, (T - N) merges' worth
  int merges_trained = 0;
};

// A plan with everything it rests on and its certificate: what `mergeplan plan` writes and
// `distill` reads.
struct PlanDocument {
  // ---- the question
  std::string schedule_spec;  // as given
  std::vector<double> alpha,
      sigma;  // T+1 each, in planning coordinates: the file stands on its own
  double data_scale = 1;
  std::string input;              // path of the spectrum or data, or "--variances"
  std::string input_sha256;       // of the variances (as little-endian float64), see VariancesHash
  std::string basis;              // "diagonal", "pca" or "given"
  std::vector<double> variances;  // d, native
  std::vector<double> weights;    // d, or empty
  Budget budget;
  Init init = Init::kChild;
  Reference reference = Reference::kSurrogate;
  Space space = Space::kNary;

  // ---- the answer
  Plan plan;
  double objective = 0, objective_surrogate = 0, objective_teacher = 0,
         objective_equal_total_time = 0;
  double lower_bound = 0, tolerance = 0;
  std::string status;  // optimal | within_gap | time_limit | interrupted
  std::string guarantee;
  std::vector<StrategyFigures> strategies;
  std::vector<double> value, tau;  // d each
  double seconds = 0;

  double gap() const { return objective > 0 ? (objective - lower_bound) / objective : 0.0; }
  int dimensions() const { return static_cast<int>(variances.size()); }
};

std::string VariancesHash(const std::vector<double>& variances);

// TOML, format version 1: scalars, the certificate, the flat table of merges. Arrays longer than 64
// (alpha, sigma, variances, weights, value, tau) go to an .npz beside the TOML, named and hashed in
// it; shorter ones stand in the TOML, so that small plans are one file. Reading back gives an equal
// document. Numbers are written so that they read back exactly.
absl::Status WritePlanToml(const PlanDocument& document, const std::string& path);
absl::StatusOr<PlanDocument> ReadPlanToml(const std::string& path);

// The object that `mergeplan plan --json` prints, and the same read back (a file written with `-o
// plan.json`): here all arrays stand in the file.
std::string PlanJson(const PlanDocument& document);
absl::Status WritePlanJson(const PlanDocument& document, const std::string& path);
absl::StatusOr<PlanDocument> ReadPlanJson(const std::string& path);

// By the ending: .json, else TOML.
absl::Status WritePlan(const PlanDocument& document, const std::string& path);
absl::StatusOr<PlanDocument> ReadPlan(const std::string& path);

}  // namespace mergeplan
