#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/operators/model.h"
#include "planner/plan/plan.h"
#include "planner/search/search.h"

namespace mergeplan {

// Where the variances of the data may be: an interval around each, at a confidence.
struct VarianceIntervals {
  std::vector<double> low, high;  // d each, native units, 0 <= low <= variance <= high
  double confidence = 0.95;       // of each by itself, 0 < confidence < 1
};

// Intervals v / (1 + e) .. v (1 + e) at 95 %, for variances without intervals of their own.
VarianceIntervals RelativeIntervals(const std::vector<double>& variances, double relative_error);

// One draw of d variances: each by itself log-normal with its estimate as the median and, to either
// side, the width that makes `low` and `high` its quantiles at (1 -+ confidence)/2; a `low` of 0 is
// as far below, in ratio, as `high` is above; 0 stays 0. Directions of a basis are held fixed. The
// same for the same seed and draw, whatever is drawn besides. O(d).
std::vector<double> DrawVariances(const std::vector<double>& variances,
                                  const VarianceIntervals& intervals, std::uint64_t seed, int draw);

// A share of draws with Wilson's interval at 95 %, which is of the number of draws only.
struct Share {
  int count = 0, of = 0;

  double share() const { return of > 0 ? static_cast<double>(count) / of : 0; }
  double low() const;
  double high() const;
};

struct SensitivityOptions {
  int draws = 200;  // 1 or more
  std::uint64_t seed = 1;
  int replans = 8;  // so many draws are planned for anew; 0: none
  // Of the plan; for planning anew too, but for the gap. Its limits on merges and rounds also say
  // which strategies the plan is compared with.
  SearchOptions search;
  double replan_gap = 1e-2;
  // For planning anew and evaluating together; draws that it has no room for are left out.
  double time_limit_seconds = 30;
};

struct Sensitivity {
  // A plan with its names: the one asked about, canonical strategies, "draw 3" (made for draw 3).
  // Plans that are equal are one candidate.
  struct Candidate {
    std::vector<std::string> names;
    Plan plan;
    bool canonical = false;
    double objective = 0;  // at the estimates
    Share best;            // draws in which no candidate is better (the first where several are)
    // The same among the canonical strategies; of 0 draws for other plans.
    Share best_strategy;
  };
  std::vector<Candidate> candidates;  // the first is the one asked about
  // Canonical strategies that have more merges or rounds than search.max_merges and max_rounds
  // allow: they are no candidates.
  std::vector<std::string> not_allowed;

  int draws = 0, asked = 0;  // evaluated; asked for
  int refused = 0;           // draws that no model could be made of (a rate too large for them)
  std::uint64_t seed = 0;
  double confidence = 0;

  // The plan asked about against the best canonical strategy that is another plan: the draws in
  // which it is not worse, and its lead (rival - plan) / max(rival, plan). Of 0 draws where every
  // strategy that is allowed is the same plan, or none is.
  struct Quantiles {
    double p5 = 0, median = 0, p95 = 0;
  };
  Share not_beaten;
  Quantiles lead;

  // Planning anew for a draw: what it gains, (plan - best known) / plan, with the best known among
  // all candidates; and what it could gain at most, by the lower bounds.
  int replans = 0;
  double regret_median = 0, regret_largest = 0, regret_bound = 0;
};

// How the lead of `plan` (called `name`) changes within the intervals of the model's variances.
// Draws are independent of the number of threads. Time O(draws T d candidates) besides planning
// anew, memory O(T d) for each thread.
//
// INVALID_ARGUMENT: intervals that do not fit the variances, options out of range, a plan of
// another number of steps. FAILED_PRECONDITION: a model of tables. No draw was possible within the
// time: draws = 0, and nothing is said.
absl::StatusOr<Sensitivity> AnalyzeSensitivity(const Model& model,
                                               const VarianceIntervals& intervals, const Plan& plan,
                                               const std::string& name,
                                               const SensitivityOptions& options);

}  // namespace mergeplan
