#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "planner/search/bounds.h"
#include "planner/search/directions.h"

namespace mergeplan::search {

// A pass for problems of two columns that keeps, of every part, only the corners of the convex hull
// of its values: of thousands of parts that no other one covers, a few are left.
//
// Proof. The objective is f(e) = sum_c max(0, e_c)^2 of the signed errors e_c, and for any point
// t >= 0
//   f(e) >= l(e) = sum_c t_c (2 e_c - t_c),
// the tangent at t. l is linear with weights t_c >= 0. Fix all of a plan but one part: e_c is
// affine and decreasing in the part's better value in column c, so l is affine in the part's pair
// of values, and falls where either gets better. A part whose values are nowhere better than a
// convex combination of kept ones can therefore be replaced by one of these, and l does not rise;
// "better" need only hold in the directions in which plans trade the two values (directions.h).
// So, part by part, every plan becomes one made of kept parts with no larger l, or it contains on
// the way a part that was dropped because l of every plan with it reaches the threshold (bounds.h:
// a_c + b_c x_c <= e_c). Hence every plan has f >= l >= min(threshold, least l at the root). Note
// that parts may be dropped for a bound of l only: one of f says nothing of the plans that replace
// it.
//
// Plans inside the hull (Lens). Where the best plan is no corner of the hull of all plans no
// tangent proves it. But then a tangent at t has left a bound L of l of all plans, and every plan
// with f < F has l >= L, too: its errors lie in the lens between that line and the circle, where
// they have nearly the direction of t: cos(angle) >= (L + |t|^2) / (2 |t| sqrt(F)). f is not
// linear, but its gradient is 2 e. Replace a part of such a plan by one with
//   (x' - x) + r (y' - y) >= 0   (each counted towards the better side)
// for both ends r of the directions that the tangents at all points of the lens have: then f does
// not rise. For as long as the errors on the way from e to e' are in the lens, the derivative of f
// there, the gradient times (e' - e), is not positive; so f stays below F, l is at least L at both
// ends and hence in between, and the way never leaves the lens. So a part may be dropped where one
// other is no worse at both ends of the directions, which leaves few. Parts of plans whose bound of
// f itself reaches F are dropped too.
//
// Rounding. Parts are dropped from the hull only if they are inside it for certain. The values of
// all parts and the factors of all rules are not negative (Applies), so a kept combination is
// better by relative errors that add up over the plan as those of evaluating it do; the
// certificate's tolerance has room for both.
class TwoColumns {
 public:
  // Two columns of targets that need only one, n-ary plans, starts at the noisiest child, nothing
  // negative, bounds of all plans.
  static bool Applies(const Model& model, const Bounds& bounds);

  TwoColumns(const Model& model, const Bounds& bounds);

  // `tangent`: t by column. Drops parts with which l reaches the threshold. False where `stop` (may
  // be empty) said true on the way, or after so many candidates.
  bool Run(std::array<double, 2> tangent, double threshold, std::int64_t max_candidates,
           const std::function<bool()>& stop);

  // A pass for plans inside the hull; `least`: no plan has a lower l of that tangent. False as Run.
  // After true, LowerBound() and BestPlan() are of f, not of l.
  bool Lens(std::array<double, 2> tangent, double least, double threshold,
            std::int64_t max_candidates, const std::function<bool()>& stop);

  // After Run() gave true:
  // min(threshold, least l of the whole plans made of kept parts): no plan has a lower objective.
  double LowerBound() const { return lower_bound_; }
  // The whole plan with the least objective among those made of kept parts that the pass saw;
  // nothing where all reach the threshold.
  std::optional<Plan> BestPlan() const;
  // The least point of f among the convex combinations of the errors `best` and of all whole plans
  // that the passes so far saw below their thresholds: where the next tangent touches best. If it
  // is on the plane of the last one, no tangent proves more.
  std::array<double, 2> Nearest(std::array<double, 2> best) const;
  std::int64_t candidates() const { return candidates_; }

 private:
  struct Point {
    double x, y;
    friend bool operator==(const Point&, const Point&) = default;
  };
  // Kept values of a part: points_[begin..begin + size).
  struct Kept {
    std::size_t begin = 0;
    int size = 0;
    Point best;  // the better of all in each column
  };
  // A bound of plans with a part of value p: l(e) >= c + x p.x + y p.y; or, in the lens, f(e).
  struct Least {
    double c, x, y;
    const double* a;
    const double* b;
    bool lens;
    double operator()(Point p) const {
      if (!lens) return c + (x * p.x + y * p.y);
      const double e0 = a[0] + b[0] * p.x, e1 = a[1] + b[1] * p.y;
      return (e0 > 0 ? e0 * e0 : 0.0) + (e1 > 0 ? e1 * e1 : 0.0);
    }
  };

  bool Pass(double threshold, std::int64_t max_candidates, const std::function<bool()>& stop);
  Least Bound(const double* a, const double* b) const;
  Point Errors(Point root) const;
  // Keeps the corners of the hull of some values of parts that end at level j, in the directions
  // that count for these, by the quick hull: the value farthest beyond a line between two corners
  // is a corner.
  Kept Keep(int j, std::vector<Point>& from);
  void Hull(Point right, Point top, std::size_t begin, std::size_t end);
  // Keeps the values that no other one is as good as in both directions x_ + `right` y_ and
  // `top`, of which `from` is left sorted.
  void Staircase(Point right, Point top, std::vector<Point>& from);
  absl::Span<const Point> Of(const Kept& kept) const {
    return absl::MakeConstSpan(points_).subspan(kept.begin, static_cast<std::size_t>(kept.size));
  }
  void Interval(int i, int j);
  void Prefix(int count, int j);
  void Root(Point value);
  Point Product(Point u, Point v) const { return {u.x * v.x, u.y * v.y}; }
  Point Merge(int j, Point product, Point v) const {
    const double* omg = bounds_.tables.omg[j - 1];
    const double* g = bounds_.tables.slope[j - 1];
    return {omg[0] * product.x + g[0] * v.x, omg[1] * product.y + g[1] * v.y};
  }

  Range BuildNode(PlanBuilder& builder, int i, int j, Point value) const;
  void BuildProduct(PlanBuilder& builder, int i, int j, Point value, std::vector<Range>& out) const;
  void BuildPrefix(PlanBuilder& builder, int count, int j, Point value,
                   std::vector<Range>& out) const;

  const Bounds& bounds_;
  const int steps_, blocks_;
  const Intervals at_;
  const double sign_x_, sign_y_;
  Directions directions_;
  std::array<double, 2> tangent_ = {0, 0};
  bool lens_ = false;
  double threshold_ = 0, lower_bound_ = 0;
  std::int64_t candidates_ = 0;
  std::vector<Point> points_;
  std::vector<Kept> nodes_, products_, prefixes_;
  std::vector<Point> node_candidates_, product_candidates_, work_;
  std::vector<Point> seen_;  // errors of whole plans
  double best_objective_ = 0;
  std::optional<Point> best_;  // value of the best whole plan
};

}  // namespace mergeplan::search
