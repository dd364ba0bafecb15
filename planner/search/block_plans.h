#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "planner/operators/model.h"
#include "planner/plan/plan.h"
#include "planner/search/bounds.h"

namespace mergeplan::search {

// Good plans of N > 1 blocks from good borders: every block is one of the mixed plans (families.h)
// over its steps, chosen together with the others, and borders move as long as that helps. They
// prove nothing. The value form only (not child-jump).
class BlockPlans {
 public:
  // The columns, tables, shape and root of `bounds` are read.
  BlockPlans(const Model& model, const Bounds& bounds);
  ~BlockPlans();

  // The best found from these borders on (the last steps of the N blocks). O(N L^2 d) for blocks of
  // L steps, each interval being looked at once for all calls. Where `stop` (may be empty) says
  // true, the best so far; none where there is not one yet.
  std::optional<Plan> From(std::vector<int> last, const std::function<bool()>& stop);

 private:
  // The mixed plans over one interval: boot from step `border` on over vanilla, or consistency up
  // to step `border` in it; of a single step, that step.
  struct Choice {
    bool boot;
    int border;
  };
  struct Options {
    std::vector<Choice> choices;
    Rows values;
  };
  struct State;

  const Options& Of(int i, int j);
  void Merge(int i, int j, const double* product, const double* child, double* out);
  std::size_t Best(const Options& options, const std::vector<double>& others, double* objective);
  void Choose(State& state, int from, int to);
  bool Move(State& state, int border, int by);
  Range Build(PlanBuilder& builder, int i, int j, const Choice& choice) const;

  const Model& model_;
  const Bounds& bounds_;
  const int steps_, blocks_;
  const std::size_t n_;
  const Intervals at_;
  std::vector<std::unique_ptr<Options>> options_;  // by interval
  std::vector<double> start_, slope_;
};

}  // namespace mergeplan::search
