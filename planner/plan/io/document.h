#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/operators/budget.h"
#include "planner/operators/tables.h"
#include "planner/operators/terms.h"
#include "planner/plan/costs.h"
#include "planner/plan/plan.h"
#include "planner/schedule/schedule.h"

namespace mergeplan {

// One canonical strategy (or the plan itself) under both budgets.
struct StrategyFigures {
  std::string name;
  double objective = 0;  // same time per merge
  // Same time in all: what BOOT spends, (T - N) merges' worth. None for tables, which have no
  // budget.
  std::optional<double> objective_equal_total_time;
  int merges_trained = 0;
  std::optional<PlanCosts> costs = {};  // none where a file of an older version does not say
};

// A plan with everything it rests on and its certificate: what `mergeplan plan` writes and
// `distill` reads.
//
// The certificate is never taken on trust: files hold a fingerprint of question, merges and
// certificate, and where it does not fit (somebody edited the file) or is missing (somebody wrote
// it by hand), reading computes objective, value, tau and strategies afresh and leaves nothing
// proven: status "unchecked", lower bound 0.
struct PlanDocument {
  // ---- the question
  // Bare tables in place of a schedule, variances, weights, budget, start and reference, which are
  // then left as they are: empty, and without meaning.
  std::optional<ModelTables> tables;
  std::string schedule_spec;  // as given
  std::vector<double> alpha,
      sigma;  // T+1 each, in planning coordinates: the file stands on its own
  double data_scale = 1;
  std::string input;              // path of the spectrum or data, or "--variances"
  std::string input_sha256;       // VariancesHash(variances); where empty, writing fills it in
  std::string basis;              // "diagonal", "dct", "pca" or "given"
  std::vector<double> variances;  // d, native
  std::vector<double> weights;    // d, or empty
  Budget budget;
  Init init = Init::kChild;
  Reference reference = Reference::kSurrogate;
  Space space = Space::kNary;
  int max_merges = 0, max_rounds = 0;  // only plans with at most so many; 0: any number

  // ---- the answer
  Plan plan;
  double objective = 0, objective_teacher = 0;
  std::optional<double> objective_surrogate, objective_equal_total_time;  // none for tables
  double lower_bound = 0, tolerance = 0;
  std::string status;  // optimal | within_gap | time_limit | interrupted | unchecked
  std::string guarantee;
  std::vector<StrategyFigures> strategies;
  std::vector<double> value, tau;  // d each
  double seconds = 0;

  double gap() const { return objective > 0 ? (objective - lower_bound) / objective : 0.0; }
  int dimensions() const {
    return tables ? tables->dimensions : static_cast<int>(variances.size());
  }
};

// SHA-256 of the numbers as little-endian float64, in hexadecimal digits.
std::string VariancesHash(const std::vector<double>& variances);

// TOML, format version 1: scalars, the certificate, the flat table of merges. Arrays longer than 64
// (alpha, sigma, variances, weights, value, tau, and those of tables) go to an .npz beside the
// TOML, named and hashed in it; shorter ones stand in the TOML, so that small plans are one file.
// Reading back gives an equal document. Numbers are written so that they read back exactly.
//
// The .npz is called STEM-HASH.npz and written first, so that the TOML always names a file that
// fits it, also when the process is killed between the two; the one that the replaced TOML named is
// removed last. Bytes that are no UTF-8 (in paths) are written as U+FFFD.
//
// INVALID_ARGUMENT where a number is not finite, sizes disagree or the certificate contradicts
// itself: nothing is written then.
absl::Status WritePlanToml(const PlanDocument& document, const std::string& path);
// Errors begin with the file, the line and the key, and say what was found and expected: unknown,
// missing or mistyped keys, gaps and overlaps of merges, a certificate that contradicts itself.
// DATA_LOSS where the .npz does not have the hash that the TOML states. O(file), and where the
// certificate is computed afresh O(T d) for each strategy.
absl::StatusOr<PlanDocument> ReadPlanToml(const std::string& path);

// The object that `mergeplan plan --json` prints, and the same read back (a file written with `-o
// plan.json`): here all arrays stand in the file. `tree` is left out above 128 steps, `value` and
// `tau` above 4096 dimensions (reading computes them). PlanJson writes a number that is not finite
// as null; WritePlanJson refuses it, as WritePlanToml does.
std::string PlanJson(const PlanDocument& document);
// The same with remarks about the run behind it: keys out of kRemarkKeys and their JSON text, taken
// as it is. Reading does not look at them.
inline constexpr std::string_view kRemarkKeys[] = {"fewer_blocks_better", "fewer_blocks",
                                                   "sensitivity", "device"};
std::string PlanJson(const PlanDocument& document,
                     const std::vector<std::pair<std::string, std::string>>& remarks);
absl::Status WritePlanJson(const PlanDocument& document, const std::string& path);
absl::StatusOr<PlanDocument> ReadPlanJson(const std::string& path);

// By the ending: .json, else TOML.
absl::Status WritePlan(const PlanDocument& document, const std::string& path);
absl::StatusOr<PlanDocument> ReadPlan(const std::string& path);

}  // namespace mergeplan
