#pragma once

#include <vector>

#include "planner/operators/model.h"
#include "planner/plan/plan.h"
#include "planner/search/options.h"
#include "planner/search/search.h"

namespace mergeplan::search {

// What a search knows so far: the best plan that was offered, within the limits on merges and
// rounds, and a lower bound of every plan; and what follows from these two. Tells
// options.progress of every change. Holds references to the model, the options and the deadline.
class Known {
 public:
  Known(const Model& model, const SearchOptions& options, const Deadline& deadline)
      : model_(model), options_(options), deadline_(deadline) {}

  void Offer(Plan plan);
  // As many as can be evaluated in little time, the most promising first.
  void Offer(std::vector<Plan> plans);
  void RaiseBound(double bound);  // of every plan, before rounding

  bool have_plan() const { return have_plan_; }
  double objective() const { return objective_; }
  double tolerance() const { return tolerance_; }
  const std::vector<double>& value() const { return value_; }  // of the best plan, by coordinate
  // Rounding subtracted.
  double LowerBound() const;
  bool Optimal() const { return objective_ - bound_ <= tolerance_; }
  bool Proven() const;  // the gap that was asked for
  // Plans whose bound is not below this need not be found: the gap asked for is then proven,
  // rounding included.
  double Threshold() const;

  // Everything of the result that follows from this, with the first words of the guarantee.
  SearchResult Result() const;

 private:
  void Report() const;

  const Model& model_;
  const SearchOptions& options_;
  const Deadline& deadline_;
  bool have_plan_ = false;
  Plan plan_;
  std::vector<double> value_;
  double objective_ = 0, tolerance_ = 0, bound_ = 0;
};

}  // namespace mergeplan::search
