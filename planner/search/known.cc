#include "planner/search/known.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mergeplan::search {

void Known::Offer(Plan plan) {
  if (options_.max_merges > 0 && plan.size() > options_.max_merges) return;
  if (options_.max_rounds > 0 && plan.rounds() > options_.max_rounds) return;
  std::vector<double> value = model_.Value(plan);
  const double objective = model_.Objective(value);
  if (have_plan_ && !(objective < objective_)) return;
  have_plan_ = true;
  objective_ = objective;
  tolerance_ = model_.Tolerance(value);
  plan_ = std::move(plan);
  value_ = std::move(value);
  Report();
}

void Known::Offer(std::vector<Plan> plans) {
  const double work = static_cast<double>(model_.steps()) * model_.dimensions();
  const std::size_t most = static_cast<std::size_t>(std::clamp(1e8 / work, 2.0, 64.0));
  if (plans.size() > most) plans.resize(most);
  for (Plan& plan : plans) Offer(std::move(plan));
}

void Known::RaiseBound(double bound) {
  if (!(bound > bound_)) return;
  bound_ = bound;
  Report();
}

void Known::Report() const {
  if (!options_.progress || !have_plan_) return;
  options_.progress({deadline_.Seconds(), objective_, LowerBound()});
}

double Known::LowerBound() const {
  return std::max(0.0, std::min(bound_, objective_) - tolerance_);
}

bool Known::Proven() const {
  return Optimal() || objective_ - (bound_ - tolerance_) <= options_.gap * objective_;
}

double Known::Threshold() const {
  return std::min(objective_, objective_ * (1 - options_.gap) + 2 * tolerance_);
}

SearchResult Known::Result() const {
  SearchResult result;
  result.plan = plan_;
  result.objective = objective_;
  result.tolerance = tolerance_;
  result.lower_bound = LowerBound();
  result.seconds = deadline_.Seconds();
  std::string space = absl::StrFormat(
      "%s plans with %d block%s", options_.space == Space::kNary ? "n-ary" : "binary",
      options_.student_steps, options_.student_steps == 1 ? "" : "s");
  if (options_.max_merges > 0)
    absl::StrAppend(&space, ", at most ", options_.max_merges, " merges");
  if (options_.max_rounds > 0)
    absl::StrAppend(&space, ", at most ", options_.max_rounds, " rounds");
  if (Optimal()) {
    result.status = SearchStatus::kOptimal;
    result.guarantee = absl::StrFormat("optimal among all %s, up to the rounding tolerance %.3g",
                                       space, tolerance_);
  } else if (Proven()) {
    result.status = SearchStatus::kWithinGap;
    result.guarantee =
        absl::StrFormat("none of all %s is better by more than %.3g %%", space, 100 * result.gap());
  } else {
    result.status = deadline_.interrupted() ? SearchStatus::kInterrupted : SearchStatus::kTimeLimit;
    result.guarantee =
        absl::StrFormat("stopped early: a plan among all %s may be better by up to %.3g %%", space,
                        100 * result.gap());
  }
  return result;
}

}  // namespace mergeplan::search
