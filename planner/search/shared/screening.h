#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "planner/search/shared/proposals.h"
#include "planner/search/shared/tree.h"

namespace mergeplan::search {

// A plan with the best allocation that few evaluations found, on the representatives.
struct Screened {
  SharedPlan plan;
  double objective = std::numeric_limits<double>::infinity();
};

// Compares plans quickly: few evaluations each, and where there are many variances on a few
// representative ones, each with the weight of its neighbours. For comparing plans, not for bounds.
class Screening {
 public:
  // The targets must be in the order of their variances. `floor` as in Descend. Plans for which
  // `fits` is false are not proposed.
  Screening(const Model& model, double total, const std::vector<Target>& targets, double floor,
            int threads, std::function<bool()> stop, std::function<bool(const Plan&)> fits);

  const SharedProblem& problem() const { return problem_; }
  // How many plans were given an allocation.
  int plans() const { return plans_; }

  // The best first; those that `stop` left out last, without an objective. Deterministic.
  std::vector<Screened> All(const std::vector<SharedPlan>& candidates);

  // The steepest descent over LocalChanges; leaves long plans as they are, for which a change costs
  // as much as a plan.
  Screened Climb(Screened best);

 private:
  Screened One(const SharedPlan& candidate) const;

  const SharedProblem problem_;
  const double floor_;
  const int threads_;
  const std::function<bool()> stop_;
  const std::function<bool(const Plan&)> fits_;
  int plans_ = 0;
};

}  // namespace mergeplan::search
