#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "planner/plan/plan.h"

namespace mergeplan {

// The least sum over trees. Every node [i,j] of a plan has a value
//
//   E([i,j]) = sum over children c of weight(i, c.first-1) E(c) + own(i, a, j, k),   E(step) = 0
//
// with a the first step of the noisiest child and k the share of a common resource (merges, or
// updates) that the merge takes; the student's value is the same sum over its blocks, with i = 1.
struct TreeProblem {
  int steps = 0;
  int max_children = 0;  // of every merge; 0: any number
  int resource = 0;      // R >= 0, the amount that all merges of a plan share; none need be left
  // weight[(i-1) * steps + (m-1)] >= 0 for 1 <= i <= m < steps.
  std::vector<double> weight;
  // Fills out[(a-i-1) * (R+1) + k] for a = i+1..j and k = 0..R: >= 0, infinite where such a share
  // is not allowed, and not rising in k.
  std::function<void(int i, int j, absl::Span<double> out)> own;
};

struct TreeAnswer {
  double value = 0;  // infinite where no plan keeps to the limits; the plan is then empty
  Plan plan;
  std::vector<int> shares;  // of the resource, for every merge of the plan
};

// The exact dynamic program. O(T^3) for R = 0, else O(T^3 R^2), times max_children - 1 where that
// is more than 2; memory O(T^2 (R+1)).
//
// Why it is exact. With weights >= 0 a node's value rises (weakly) with each child's value, and
// depends on what is inside a child through that value and the resource used there alone. So in a
// best plan each child may be replaced by the best one of its range that uses no more resource:
// E[i,j][k], the least value with at most k, is enough to know (optimal substructure). A merge over
// [i,j] whose noisiest child begins at a is a row of children over [i,a-1], followed by that child;
// the row's sum has weights that depend on i and on where each of its children begins, all known
// when i is. So for a fixed i the table
//   Q[m] = least sum of rows over [i,m] = min( E[i,m], min over a of Q[a-1] + weight(i,a-1) E[a,m]
//   )
// covers rows of any number of children, and
//   E[i,j] = min over a of Q[a-1] + weight(i,a-1) E[a,j] + own(i,a,j),
// each with shares of the resource that add up to k. The weight of a child is applied to the whole
// value of that child, once, in the merge that it is a child of: terms are added from the leaves up
// and never reordered over a weight. Where the number of children is limited, Q has one layer for
// each number.
//
// Ties: candidates are tried in a fixed order (the shortest noisiest child first, single steps
// before merged rows, small shares first) and only a strictly smaller value replaces one. So the
// answer is the same in every run, and where all else is equal it is the plan with few merges.
class TreeProgram {
 public:
  explicit TreeProgram(TreeProblem problem);

  // The best plan with exactly `blocks` blocks, 1..T. O(N T^2 (R+1)^2) beyond the tables.
  TreeAnswer Best(int blocks) const;
  // The least value of a node over [i,j] that uses at most k of the resource.
  double Value(int i, int j, int k) const { return Cell(i, j)[k]; }

  // About how many steps of its innermost loop a problem takes.
  static double Effort(int steps, int max_children, int resource);

 private:
  using Row = std::vector<double>;  // values over k = 0..R
  struct Found {                    // merges in any order
    std::vector<MergeSpec> merges;
    std::vector<int> shares;
  };

  absl::Span<const double> Cell(int i, int j) const {
    return absl::MakeConstSpan(values_).subspan(
        (static_cast<size_t>(j - 1) * problem_.steps + (i - 1)) * width_, width_);
  }
  absl::Span<double> Cell(int i, int j) {
    return absl::MakeSpan(values_).subspan(
        (static_cast<size_t>(j - 1) * problem_.steps + (i - 1)) * width_, width_);
  }
  double Weight(int i, int m) const {
    return problem_.weight[static_cast<size_t>(i - 1) * problem_.steps + (m - 1)];
  }
  // Rows of children over [i,m]: layer l = 0..layers_-1 holds rows of at most l + 1 children, the
  // only layer of an unlimited problem rows of any number.
  absl::Span<double> Prefix(std::vector<double>& table, int layer, int m) const {
    return absl::MakeSpan(table).subspan(
        (static_cast<size_t>(layer) * (problem_.steps + 1) + m) * width_, width_);
  }
  absl::Span<const double> Prefix(const std::vector<double>& table, int layer, int m) const {
    return absl::MakeConstSpan(table).subspan(
        (static_cast<size_t>(layer) * (problem_.steps + 1) + m) * width_, width_);
  }
  int LayerBelow(int layer) const { return problem_.max_children == 0 ? layer : layer - 1; }

  void SolveNode(int i, int j, const std::vector<double>& prefix, std::vector<double>& own,
                 Row& sum);
  void ExtendPrefix(int i, int m, std::vector<double>& prefix, Row& sum) const;
  void TakeNode(int i, int j, int k, Found& found) const;
  void TakePrefix(int i, int m, int layer, int k, const std::vector<double>& prefix, Found& found,
                  std::vector<Range>& children) const;

  TreeProblem problem_;
  int width_;  // R + 1
  int layers_;
  std::vector<double> values_;  // [j][i][k]
};

}  // namespace mergeplan
