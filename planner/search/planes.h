#pragma once

#include <functional>
#include <vector>

#include "planner/search/block_borders.h"
#include "planner/search/column_problem.h"
#include "planner/search/shape.h"

namespace mergeplan::search {

// The least and largest value of every part that a plan can have, of one column:
//   s  a node over [i,j];  q  one or more neighbouring nodes over [i,j]  (shapes other than kNary:
//   q is s) prefix  n blocks over 1..j at row n, entry j;  suffix  n blocks over i..T at row n,
//   entry i
// A value increases in each of its parts' values, so the ends follow from the ends of the parts.
// O(T^3 + N T^2); the memory is the caller's to keep for the next column.
struct InsideEnd {
  InsideEnd() = default;
  InsideEnd(int steps, int blocks);
  // Of one end: the largest values, or the least. `all_steps` is read for shapes other than kNary.
  // False, and half-made, where `stop` (may be empty) said true on the way; so below.
  bool Run(const ColumnProblem& column, Shape shape, bool largest, const Plane& all_steps,
           int threads, const std::function<bool()>& stop);

  // By first level (row i, entry j) and by last level (row j, entry i).
  Plane s_first, s_last, q_first, q_last;
  // Where the other blocks have a step at least.
  std::vector<std::vector<double>> prefix, suffix;
};

struct InsidePlanes {
  InsidePlanes(int steps, int blocks);
  bool Run(const ColumnProblem& column, Shape shape, const std::function<bool()>& stop);

  int steps, blocks;
  InsideEnd lo, hi;
  Plane all_steps;  // product of the single steps i..j by first level; shapes other than kNary
};

// all_steps of a column.
void MultiplySteps(const ColumnProblem& column, Plane& all_steps);

// Values of the product of two neighbours [i,m], [m+1,j], and of the merge over [i,j] of that
// product.
double ProductValue(const ColumnProblem& column, int i, int m, double u, double v);
double MergeValue(const ColumnProblem& column, int i, int m, int j, double u, double v);

// The blocks that may be used, of one column; null: all.
struct BlockLimits {
  const BlockBorders* borders = nullptr;
  std::size_t column = 0;
};

// What a part's value x means for the whole plan: sqrt(w) times the signed error of every plan that
// contains the part is at least a + b x. bounds.h has the proof. O(T^3 + N T^2).
struct OutsidePlanes {
  OutsidePlanes(int steps, int blocks);
  // Root: the signed error of a whole plan of carried value x is root_a + root_b x. With `limits`
  // nothing is said, and nothing written, of intervals that are in no block that is left.
  bool Run(const ColumnProblem& column, Shape shape, const InsidePlanes& inside,
           bool larger_is_better, double root_a, double root_b, const BlockLimits& limits,
           const std::function<bool()>& stop);
  int steps, blocks;
  Plane s_a_first, s_b_first, q_a_first, q_b_first;  // row i, entry j
  Plane s_a_last, s_b_last, q_a_last, q_b_last;      // row j, entry i
  std::vector<std::vector<double>> prefix_a, prefix_b;
};

}  // namespace mergeplan::search
