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
// with a the first step of the noisiest child and k the share of a common resource (updates) that
// the merge takes; the student's value is the same sum over its blocks, with i = 1.
struct TreeProblem {
  int steps = 0;
  int max_children = 0;  // of every merge; 0: any number
  int max_merges = 0;    // of the whole plan; 0: any number
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

// The exact dynamic program. O(T^3 R^2 M^2) with R the resource and M the largest number of merges,
// each factor only where it is limited, times max_children - 1 where that is more than 2; memory
// O(T^2 (R+1) (M+1)).
//
// Why it is exact. With weights >= 0 a node's value rises (weakly) with each child's value, and
// depends on what is inside a child through that value, the resource and the merges used there
// alone. So in a best plan each child may be replaced by the best one of its range that uses no
// more resource and no more merges: E[i,j][n][k], the least value with at most n merges and at most
// k of the resource, is enough to know (optimal substructure). A merge over [i,j] whose noisiest
// child begins at a is a row of children over [i,a-1], followed by that child; the row's sum has
// weights that depend on i and on where each of its children begins, all known when i is. So for a
// fixed i the table
//   Q[m] = least sum of rows over [i,m] = min( E[i,m], min over a of Q[a-1] + weight(i,a-1) E[a,m]
//   )
// covers rows of any number of children, and
//   E[i,j] = min over a of Q[a-1] + weight(i,a-1) E[a,j] + own(i,a,j),
// each with shares that add up to k and merges that add up to n, the new one included. The weight
// of a child is applied to the whole value of that child, once, in the merge that it is a child of:
// terms are added from the leaves up and never reordered over a weight. Where the number of
// children is limited, Q has one layer for each number.
//
// Ties: candidates are tried in a fixed order (the shortest noisiest child first, single steps
// before merged rows, small shares first) and only a strictly smaller value replaces one. So the
// answer is the same in every run, and where all else is equal it is the plan with few merges.
class TreeProgram {
 public:
  explicit TreeProgram(TreeProblem problem);

  // The best plan with exactly `blocks` blocks, 1..T. O(N T^2 R^2 M^2) beyond the tables.
  TreeAnswer Best(int blocks) const;

  // About how many steps of its innermost loop a problem takes.
  static double Effort(int steps, int max_children, int max_merges, int resource);

 private:
  // Values over [n][k]: at most n merges (one row where they are not limited), at most k = 0..R.
  using Row = std::vector<double>;
  // What a part of a plan may use.
  struct Means {
    int merges, resource;
  };
  struct Found {  // merges in any order
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
  size_t At(int merges, int resource) const {
    return static_cast<size_t>(merges) * columns_ + resource;
  }
  // out = min(out, x + weight * y over all ways to part the means between x and y).
  void Join(absl::Span<const double> x, double weight, absl::Span<const double> y,
            absl::Span<double> out) const;
  // Looks for the parting of `means` with the least x + weight * y + add; where that is less than
  // `best`, it becomes `best` and `inside` what y gets.
  bool Improves(absl::Span<const double> x, double weight, absl::Span<const double> y, double add,
                Means means, double& best, Means& inside) const;

  void SolveNode(int i, int j, const std::vector<double>& prefix, std::vector<double>& own,
                 Row& sum);
  void ExtendPrefix(int i, int m, std::vector<double>& prefix, Row& sum) const;
  void TakeNode(int i, int j, Means means, Found& found) const;
  void TakePrefix(int i, int m, int layer, Means means, const std::vector<double>& prefix,
                  Found& found, std::vector<Range>& children) const;

  TreeProblem problem_;
  int rows_;     // of a cell: M + 1, or 1 where merges are not limited
  int columns_;  // of a cell: R + 1
  int width_;    // both
  int layers_;
  std::vector<double> values_;  // [j][i][n][k]
};

}  // namespace mergeplan
