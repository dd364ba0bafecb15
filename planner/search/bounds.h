#pragma once

#include <functional>

#include "planner/search/columns.h"
#include "planner/search/kernels.h"

namespace mergeplan::search {

// Least and largest carried value, per column, of every part that a plan can have:
//   s  a node over [i,j]                        by interval
//   q  one or more neighbouring nodes over [i,j]   by interval
//   prefix  n blocks over 1..j; suffix  n blocks over j..T   by Layer(n, j)
// A value increases in each of its parts' values, so the ends follow from the ends of the parts.
// O(T^3 d + N T^2 d). Where `stop` (may be empty) says true the tables are left half-made; the
// caller asks it again afterwards.
struct Inside {
  Inside(const Model& model, const Columns& columns, const ColumnTables& tables, Shape shape,
         int blocks, int threads, const std::function<bool()>& stop);

  std::size_t Layer(int n, int j) const {
    return static_cast<std::size_t>(n - 1) * steps + (j - 1);
  }
  int steps;
  Rows s_lo, s_hi, q_lo, q_hi;
  Rows prefix_lo, prefix_hi, suffix_lo, suffix_hi;
  // Product of the single steps i..j (shapes binary and direct), by interval.
  Rows steps_product;
};

// What a part's value means for the whole plan. For every part (node, product, prefix) and column,
// a + b x is a lower bound of sqrt(w) * (signed error of any whole plan that contains the part with
// value x), x within the part's ends:
//
// Fix all of a plan but the part. The plan's value is increasing and affine in x, so the signed
// error e (tau - V where larger is better, V - tau where smaller is) is affine in x, and the least
// e over all plans that contain the part is a minimum of affine functions: concave. A concave
// function lies above its chord. The chord through the values at the two ends is therefore a lower
// bound in between, and so is the chord through lower bounds of these values. The values at the
// ends come from the chords of the larger parts that the part can be put into, with the sibling at
// its best end (e decreases with the sibling's value, which does not depend on x). Hence
//   objective of any plan containing parts with values x  >=  sum_c max(0, a_c + b_c x_c)^2,
// up to rounding, which the certificate's tolerance covers. O(T^3 d + N T^2 d).
struct Outside {
  Outside(const Model& model, const Columns& columns, const ColumnTables& tables,
          const Inside& inside, Shape shape, int blocks, int threads,
          const std::function<bool()>& stop);

  Rows s_a, s_b, q_a, q_b;  // by interval
  Rows prefix_a, prefix_b;  // by Inside::Layer; for n = N only j = T is used, where the bound is
                            // the exact error
};

// The rule that combines [i,m] and [m+1,j]. `start` may be empty (merges start from their noisiest
// child).
CandidateRule RuleFor(const Model& model, const ColumnTables& tables, int i, int m, int j,
                      bool merge, const std::vector<double>& start);

}  // namespace mergeplan::search
