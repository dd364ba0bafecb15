#pragma once

#include <vector>

#include "absl/types/span.h"
#include "planner/operators/model.h"
#include "planner/plan/plan.h"
#include "planner/search/columns.h"

namespace mergeplan::search {

// A model whose merges share one total of training, in the coordinates that a search looks at.
struct SharedProblem {
  // Every coordinate of the model, or those of the targets (with their weights). The model must
  // have a schedule and outlive the problem; total > 0: time s, or updates.
  SharedProblem(const Model& model, double total);
  SharedProblem(const Model& model, double total, absl::Span<const Target> targets);

  std::size_t width() const { return coordinate.size(); }
  int steps() const { return model->steps(); }
  // log gamma at level t per unit of training, by column: -2 n, or log1p(-step size). Negative.
  const double* Rate(int t) const {
    return rate.data() + static_cast<std::size_t>(t - 1) * width();
  }
  // Carried value of step t, by column.
  const double* Leaf(int t) const {
    return leaf.data() + static_cast<std::size_t>(t - 1) * width();
  }

  const Model* model;
  double total;
  std::vector<int> coordinate;      // of the model
  std::vector<double> weight, tau;  // by column
  std::vector<double> rate, leaf;   // T x columns

 private:
  void Gather();
};

// The objective of one plan as a function of how its merges share the total: merge m, which ends in
// level j, gets the share x_m and shrinks by gamma_m = exp(x_m total rate_j). Values are computed
// in the model's carried form and differentiated by a reverse pass. Not for several threads at
// once. The problem must outlive the tree.
class SharedTree {
 public:
  SharedTree(const SharedProblem& problem, const Plan& plan);

  const Plan& plan() const { return plan_; }
  const SharedProblem& problem() const { return *problem_; }
  int merges() const { return plan_.size(); }
  // Multiplications of one evaluation, about.
  double Work() const {
    return static_cast<double>(problem_->steps() + 8.0 * merges()) *
           static_cast<double>(problem_->width());
  }

  // sum_k w_k (tau_k - V_k)^2 at the shares (M numbers >= 0), in native units. `gradient`, where
  // not null, gets the M derivatives by the shares. O((T + M) d) time; memory O(T + M).
  double Objective(absl::Span<const double> shares, double* gradient);
  // V of the whole student, by column.
  std::vector<double> Value(absl::Span<const double> shares);

 private:
  // Carried values of the nodes in the columns begin..begin+width-1, and what the reverse pass
  // needs of them. Writes V of the student to `value`.
  void Forward(absl::Span<const double> shares, std::size_t begin, std::size_t width,
               double* value);
  void Reverse(std::size_t begin, std::size_t width, const double* by_value, double* gradient);

  // One child of a merge, with the join that adds it to the product of those before it.
  struct Child {
    int node;
    Model::Join join;
  };
  const SharedProblem* problem_;
  Plan plan_;
  std::vector<Child> children_;     // of all merges, one after the other
  std::vector<int> first_child_;    // M + 1
  std::vector<Model::Affine> top_;  // of the blocks
  std::vector<double> start_;       // M x columns; empty where merges start from their child
  // Scratch, node-major, kWidth columns each.
  std::vector<double> node_, product_, gamma_, block_;
  std::vector<double> by_node_;
};

}  // namespace mergeplan::search
