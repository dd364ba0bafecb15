#pragma once

#include <array>
#include <vector>

#include "planner/search/bounds.h"

namespace mergeplan::search {

// How a whole plan of a problem of two columns trades the values of one of its parts: from the
// bounds, before any part is made.
//
// l, a tangent of the objective (two_columns.h), falls by A per unit of a part's better value x in
// the first column and by B per unit of y in the second. The ratio B / A is nearly the same in all
// plans that a part can be in, so that of the hull of a part's values only the few corners count
// that are farthest out in such a direction.
//
// Proof of the range. Take a whole plan of values V_x, V_y with a part over [i,j] of values x, y.
// With the start `child` a merge at level m has the value v (omg_m u + g_m), u being the product of
// its cleaner children and v its noisiest. So a relative change of v is one of the merge, and one
// of a child in u is one of the merge times
//   h_m(u) = omg_m u / (omg_m u + g_m)  in [0, 1],
// which increases in u; products pass it on as it is. Hence dV/dx = H_x V_x / x, H_x being the
// product of h_m(u) over the merges in whose cleaner children the part lies: each of another level
// m > j, as ranges that contain one another on their cleaner side end at different levels. The
// merges are the same in both columns, so
//   B / A = (t_y |b_y| V_y H_y / y) / (t_x |b_x| V_x H_x / x),
// b being the root's slope, and H_y / H_x lies between the products over m > j of
// min(1, least h_m in column y / largest in column x) and of max(1, largest / least), the ends
// taken over all products that end before m. V lies between its ends over all plans, and, as only
// plans with l below the threshold matter, where the other column's error at its best leaves it.
// What is computed is widened by far more than its rounding.
class Directions {
 public:
  struct Range {
    double least, most;  // of B / A; 0 and infinity where nothing is known
  };

  // Of problems that TwoColumns::Applies to. O(T).
  explicit Directions(const Bounds& bounds);
  // For the tangent at t and plans with l below the threshold. With a `turn`, for the tangents at
  // all t' >= 0 with (t'_y / t'_x) / (t_y / t_x) in that range.
  void Set(const std::array<double, 2>& tangent, double threshold, Range turn = {1, 1});
  // Of parts that end at level j and have values in [least, most], by column.
  Range Of(int j, const std::array<double, 2>& least, const std::array<double, 2>& most) const;

 private:
  const Bounds& bounds_;
  std::vector<Range> levels_;  // H_y / H_x of parts that end at level j, at entry j
  Range whole_ = {0, 0};       // t_y |b_y| V_y / (t_x |b_x| V_x)
};

}  // namespace mergeplan::search
