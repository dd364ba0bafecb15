#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "planner/operators/model.h"
#include "planner/plan/plan.h"

namespace mergeplan {

// What is known so far.
struct SearchProgress {
  double seconds = 0;
  double objective = 0;    // of the best plan so far
  double lower_bound = 0;  // of every plan
};

// What the widest intervals are worked on. kAuto: a CUDA device where there is one and an interval
// is worth it. kCuda: the same, and an error where there is none. kEmulation: the device's kernels
// as loops on the processor, for tests. The plan, its objective and the bound are the same with
// all.
enum class SearchDevice { kAuto, kCpu, kCuda, kEmulation };

struct SearchOptions {
  int student_steps = 1;  // N blocks, 1 <= N <= T
  Space space = Space::kNary;
  // Only plans with at most so many merges, and rounds of merges; 0: any number.
  int max_merges = 0, max_rounds = 0;
  double gap = 1e-3;  // stop when (objective - lower_bound) / objective <= gap; 0 asks for a proof
  double time_limit_seconds = 30;
  int threads = 0;  // 0: as many as the machine has
  // > 0: the lower bound is computed with at most so many groups of neighbouring variances. 0: as
  // many as the gap and the memory ask for, or none at all.
  int groups = 0;
  SearchDevice device = SearchDevice::kAuto;
  // Pairs times columns from which on an interval goes to the device. Nothing: Offload::kLeastWork
  // (planner/search/cuda/offload.h).
  std::optional<double> device_least_work;
  std::function<bool()> interrupted;  // asked now and then; true stops with what there is
  // Told whenever a better plan or bound is found, from the thread that called Solve.
  std::function<void(const SearchProgress&)> progress;
};

enum class SearchStatus { kOptimal, kWithinGap, kTimeLimit, kInterrupted };
// "optimal", "within_gap", "time_limit", "interrupted".
std::string_view ToString(SearchStatus status);

struct SearchResult {
  Plan plan;
  double objective = 0;    // against the model's reference
  double lower_bound = 0;  // no plan of the space has an objective below it; never negative
  double tolerance = 0;    // rounding bound of `objective`, already subtracted from lower_bound
  SearchStatus status = SearchStatus::kOptimal;
  std::string guarantee;  // in words: what is proven, and by what
  int groups = 0;         // > 0: so many groups of neighbouring variances carry the lower bound
  // What the passes ran on: "cpu", or the device's name; and why it was given up, if it was.
  std::string device = "cpu";
  double seconds = 0;

  // (objective - lower_bound) / objective, 0 where the objective is 0.
  double gap() const { return objective > 0 ? (objective - lower_bound) / objective : 0.0; }
};

// Finds the plan with the least objective (thm:pareto_dp_merge_optimal, over n-ary merges), with a
// certificate. Always returns a plan; `status` says what is proven of it. See
// planner/search/README.md for the method.
absl::StatusOr<SearchResult> Solve(const Model& model, const SearchOptions& options);

}  // namespace mergeplan
