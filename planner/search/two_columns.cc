#include "planner/search/two_columns.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>
#include <tuple>
#include <utility>

namespace mergeplan::search {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

bool NotNegative(const Rows& rows) {
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    if (!(rows[row][0] >= 0 && rows[row][1] >= 0)) return false;
  }
  return true;
}

}  // namespace

bool TwoColumns::Applies(const Model& model, const Bounds& bounds) {
  return bounds.steps > 1 && bounds.columns.size() == 2 && bounds.columns.dominance_everywhere &&
         bounds.shape == Shape::kNary && bounds.borders == nullptr && !model.carries_x0() &&
         model.starts_from_child() && bounds.tables.offset.rows() == 0 &&
         NotNegative(bounds.tables.leaf) && NotNegative(bounds.tables.omg) &&
         NotNegative(bounds.tables.slope);
}

TwoColumns::TwoColumns(const Model& model, const Bounds& bounds)
    : bounds_(bounds),
      steps_(model.steps()),
      blocks_(bounds.blocks),
      at_(model.steps()),
      sign_x_(bounds.columns.sign[0]),
      sign_y_(bounds.columns.sign[1]),
      directions_(bounds) {}

TwoColumns::Least TwoColumns::Bound(const double* a, const double* b) const {
  Least plane = {0, 0, 0, a, b, lens_};
  double* const slope[] = {&plane.x, &plane.y};
  for (int c = 0; c < 2; ++c) {
    const double t = tangent_[c];
    if (t == 0 || lens_) continue;  // the bound may be infinite: no plan is made of such parts
    plane.c += t * (2 * a[c] - t);
    *slope[c] = 2 * t * b[c];
  }
  return plane;
}

TwoColumns::Point TwoColumns::Errors(Point root) const {
  const double* a = bounds_.prefix_a[bounds_.root()];
  const double* b = bounds_.prefix_b[bounds_.root()];
  return {std::max(0.0, a[0] + b[0] * root.x), std::max(0.0, a[1] + b[1] * root.y)};
}

// Keeps the corners beyond the line from `right` to `top` among work_[begin, end). `right` and
// `top` are corners, kept already; what is better than `right` in column 0 or than `top` in column
// 1 is the business of other lines. Writes to work_ behind `end`.
void TwoColumns::Hull(Point right, Point top, std::size_t begin, std::size_t end) {
  constexpr double kUnits = 8 * 0x1p-53;  // of two differences, their product and their sum
  constexpr double kUnderflow = 1e-300;
  const double turn = sign_x_ * sign_y_;
  const double dx = top.x - right.x, dy = top.y - right.y;
  double most = -kInf;
  bool certain = false;
  Point corner{};
  work_.resize(end + (end - begin));
  std::size_t out = end;
  for (std::size_t k = begin; k < end; ++k) {
    const Point p = work_[k];
    const double one = dy * (p.x - right.x), two = dx * (p.y - right.y);
    const double beyond = turn * (one - two);
    const double error = kUnits * (std::abs(one) + std::abs(two)) + kUnderflow;
    // Without branches: which way they go is anybody's guess.
    const bool inside = beyond < -error;
    const bool end_itself =
        ((p.x == right.x) & (p.y == right.y)) | ((p.x == top.x) & (p.y == top.y));
    work_[out] = p;
    out += static_cast<std::size_t>(!(inside | end_itself));
    if (beyond > most) {
      most = beyond;
      corner = p;
      certain = beyond > error;
    }
  }
  if (!certain) {  // too near to the line to be told
    points_.insert(points_.end(), work_.begin() + static_cast<std::ptrdiff_t>(end),
                   work_.begin() + static_cast<std::ptrdiff_t>(out));
    return;
  }
  points_.push_back(corner);
  if (out - end == 1) return;
  Hull(right, corner, end, out);
  Hull(corner, top, end, out);
}

// points_ ends with the best value in each of the two directions.
void TwoColumns::Staircase(Point right, Point top, std::vector<Point>& from) {
  const Point last = points_.back();
  const auto along = [](Point direction, Point p) { return direction.x * p.x + direction.y * p.y; };
  std::sort(from.begin(), from.end(), [&](Point p, Point q) {
    const double x = along(right, p), y = along(right, q);
    return x > y || (x == y && along(top, p) > along(top, q));
  });
  double high = along(top, from.front());
  for (const Point& p : from) {
    const double height = along(top, p);
    if (!(height > high)) continue;
    high = height;
    if (p != last) points_.push_back(p);
  }
}

TwoColumns::Kept TwoColumns::Keep(int j, std::vector<Point>& from) {
  Kept kept;
  kept.begin = points_.size();
  if (from.empty()) return kept;
  std::array<double, 2> least = {from[0].x, from[0].y}, most = least;
  for (const Point& p : from) {
    least = {std::min(least[0], p.x), std::min(least[1], p.y)};
    most = {std::max(most[0], p.x), std::max(most[1], p.y)};
  }
  // The corners at both ends of the directions: of equals, the one that is better in between.
  const Directions::Range range = directions_.Of(j, least, most);
  const bool any = !(range.most < kInf);
  const double right_y = sign_y_ * range.least;
  const double top_x = any ? 0 : sign_x_, top_y = any ? sign_y_ : sign_y_ * range.most;
  const auto rightness = [&](Point p) { return sign_x_ * p.x + right_y * p.y; };
  const auto height = [&](Point p) { return top_x * p.x + top_y * p.y; };
  Point right = from[0], top = from[0];
  double most_right = rightness(right), most_high = height(top);
  for (const Point& p : from) {
    const double x = rightness(p), y = height(p);
    if (x > most_right || (x == most_right && sign_y_ * (p.y - right.y) > 0)) {
      right = p;
      most_right = x;
    }
    if (y > most_high || (y == most_high && sign_x_ * (p.x - top.x) > 0)) {
      top = p;
      most_high = y;
    }
  }
  points_.push_back(right);
  if (right != top) {
    points_.push_back(top);
    if (from.size() > 2 && lens_) {
      Staircase({sign_x_, right_y}, {top_x, top_y}, from);
    } else if (from.size() > 2) {
      work_.swap(from);
      Hull(right, top, 0, work_.size());
      work_.swap(from);
    }
  }
  kept.size = static_cast<int>(points_.size() - kept.begin);
  kept.best = right;
  for (const Point& p : Of(kept)) {
    kept.best = {sign_x_ * std::max(sign_x_ * kept.best.x, sign_x_ * p.x),
                 sign_y_ * std::max(sign_y_ * kept.best.y, sign_y_ * p.y)};
  }
  return kept;
}

void TwoColumns::Root(Point value) {
  const std::size_t root = bounds_.root();
  const double least = Bound(bounds_.prefix_a[root], bounds_.prefix_b[root])(value);
  if (!(least < threshold_)) return;
  lower_bound_ = std::min(lower_bound_, least);
  const Point e = Errors(value);
  seen_.push_back(e);
  const double objective = e.x * e.x + e.y * e.y;
  if (best_ && !(objective < best_objective_)) return;
  best_objective_ = objective;
  best_ = value;
}

void TwoColumns::Interval(int i, int j) {
  const std::size_t ij = at_(i, j);
  const bool root = blocks_ == 1 && i == 1 && j == steps_;
  const bool with_products = j < steps_;  // a product is always followed by a node
  const Least node = Bound(bounds_.s_a[ij], bounds_.s_b[ij]);
  const Least product = with_products ? Bound(bounds_.q_a[ij], bounds_.q_b[ij]) : node;
  node_candidates_.clear();
  product_candidates_.clear();
  if (i == j) {
    const double* leaf = bounds_.tables.leaf[j - 1];
    node_candidates_.push_back({leaf[0], leaf[1]});
  }
  for (int m = i; m < j; ++m) {
    const Kept& left = products_[at_(i, m)];
    const Kept& right = nodes_[at_(m + 1, j)];
    if (left.size == 0 || right.size == 0) continue;
    // What fails even with the best of both, column by column, fails with all.
    const Point best = Product(left.best, right.best);
    const bool merges = node(Merge(j, best, right.best)) < threshold_;
    const bool products = with_products && product(best) < threshold_;
    if (!merges && !products) continue;
    for (const Point& u : Of(left)) {
      const Point best_of_row = Product(u, right.best);
      const bool row_merges = merges && node(Merge(j, best_of_row, right.best)) < threshold_;
      const bool row_products = products && product(best_of_row) < threshold_;
      if (!row_merges && !row_products) continue;
      candidates_ += right.size;
      for (const Point& v : Of(right)) {
        const Point q = Product(u, v);
        if (row_merges) {
          const Point s = Merge(j, q, v);
          if (root) {
            Root(s);
          } else if (node(s) < threshold_) {
            node_candidates_.push_back(s);
          }
        }
        if (row_products && product(q) < threshold_) product_candidates_.push_back(q);
      }
    }
  }
  nodes_[ij] = Keep(j, node_candidates_);
  if (!with_products) return;
  for (const Point& s : Of(nodes_[ij])) {
    if (product(s) < threshold_) product_candidates_.push_back(s);
  }
  products_[ij] = Keep(j, product_candidates_);
}

void TwoColumns::Prefix(int count, int j) {
  const std::size_t layer = bounds_.Layer(count, j);
  const Least plane = Bound(bounds_.prefix_a[layer], bounds_.prefix_b[layer]);
  node_candidates_.clear();
  const Kept& first = nodes_[at_(1, j)];
  for (const Point& s : count == 1 ? Of(first) : absl::Span<const Point>()) {
    if (plane(s) < threshold_) node_candidates_.push_back(s);
  }
  for (int m = count - 1; m < j && count > 1; ++m) {
    const Kept& left = prefixes_[bounds_.Layer(count - 1, m)];
    const Kept& right = nodes_[at_(m + 1, j)];
    candidates_ += static_cast<std::int64_t>(left.size) * right.size;
    for (const Point& u : Of(left)) {
      for (const Point& v : Of(right)) {
        const Point q = Product(u, v);
        if (count == blocks_) {
          Root(q);
        } else if (plane(q) < threshold_) {
          node_candidates_.push_back(q);
        }
      }
    }
  }
  prefixes_[layer] = Keep(steps_, node_candidates_);
}

std::array<double, 2> TwoColumns::Nearest(std::array<double, 2> best) const {
  std::vector<Point> points = seen_;
  points.push_back({best[0], best[1]});
  std::sort(points.begin(), points.end(),
            [](Point p, Point q) { return std::tie(p.x, p.y) < std::tie(q.x, q.y); });
  std::vector<Point> chain;  // the lower left of the hull
  for (const Point& p : points) {
    if (!chain.empty() && p.y >= chain.back().y) continue;
    while (chain.size() > 1) {
      const Point o = chain[chain.size() - 2], q = chain.back();
      if ((q.x - o.x) * (p.y - o.y) > (q.y - o.y) * (p.x - o.x)) break;
      chain.pop_back();
    }
    chain.push_back(p);
  }
  Point nearest = chain[0];
  const auto offer = [&nearest](Point p) {
    if (p.x * p.x + p.y * p.y < nearest.x * nearest.x + nearest.y * nearest.y) nearest = p;
  };
  for (std::size_t k = 1; k < chain.size(); ++k) {
    const Point p = chain[k - 1], q = chain[k];
    const double dx = q.x - p.x, dy = q.y - p.y;
    const double share = -(p.x * dx + p.y * dy) / (dx * dx + dy * dy);
    offer(q);
    if (share > 0 && share < 1) offer({p.x + share * dx, p.y + share * dy});
  }
  return {nearest.x, nearest.y};
}

bool TwoColumns::Run(std::array<double, 2> tangent, double threshold, std::int64_t max_candidates,
                     const std::function<bool()>& stop) {
  tangent_ = tangent;
  lens_ = false;
  directions_.Set(tangent, threshold);
  return Pass(threshold, max_candidates, stop);
}

bool TwoColumns::Lens(std::array<double, 2> tangent, double least, double threshold,
                      std::int64_t max_candidates, const std::function<bool()>& stop) {
  constexpr double kRounding = 1e-14, kWider = 1e-9;
  tangent_ = tangent;
  lens_ = true;
  const double length = std::hypot(tangent[0], tangent[1]);
  const double cosine = (least + length * length) / (2 * length * std::sqrt(threshold));
  const double angle = std::acos(std::clamp(cosine - kRounding, 0.0, 1.0)) + kWider;
  const double middle = std::atan2(tangent[1], tangent[0]);
  const double slope = tangent[1] / tangent[0];
  Directions::Range turn = {0, kInf};
  if (middle - angle > 0) turn.least = std::tan(middle - angle) / slope;
  if (middle + angle < std::numbers::pi / 2) turn.most = std::tan(middle + angle) / slope;
  directions_.Set(tangent, threshold, turn);
  return Pass(threshold, max_candidates, stop);
}

bool TwoColumns::Pass(double threshold, std::int64_t max_candidates,
                      const std::function<bool()>& stop) {
  threshold_ = lower_bound_ = threshold;
  candidates_ = 0;
  best_.reset();
  points_.clear();
  nodes_.assign(at_.size(), {});
  products_.assign(at_.size(), {});
  prefixes_.assign(static_cast<std::size_t>(blocks_) * steps_, {});
  constexpr std::int64_t kPerCheck = 1 << 16;
  std::int64_t next_check = kPerCheck;
  for (int length = 1; length <= steps_; ++length) {
    if (stop && stop()) return false;
    for (int i = 1; i + length - 1 <= steps_; ++i) {
      Interval(i, i + length - 1);
      if (candidates_ > max_candidates) return false;
      if (candidates_ < next_check) continue;
      next_check = candidates_ + kPerCheck;
      if (stop && stop()) return false;
    }
  }
  for (int count = 1; count <= blocks_ && blocks_ > 1; ++count) {
    if (candidates_ > max_candidates || (stop && stop())) return false;
    const int last = steps_ - (blocks_ - count);
    for (int j = count == blocks_ ? steps_ : count; j <= last; ++j) Prefix(count, j);
  }
  return true;
}

// The kept values that `value` was made of are found again by making all of them: the arithmetic
// gives the same digits.
Range TwoColumns::BuildNode(PlanBuilder& builder, int i, int j, Point value) const {
  if (i == j) return PlanBuilder::Step(j);
  for (int m = i; m < j; ++m) {
    for (const Point& u : Of(products_[at_(i, m)])) {
      for (const Point& v : Of(nodes_[at_(m + 1, j)])) {
        if (!(Merge(j, Product(u, v), v) == value)) continue;
        std::vector<Range> children;
        BuildProduct(builder, i, m, u, children);
        children.push_back(BuildNode(builder, m + 1, j, v));
        return builder.Merge(std::move(children));
      }
    }
  }
  assert(false);
  return {};
}

void TwoColumns::BuildProduct(PlanBuilder& builder, int i, int j, Point value,
                              std::vector<Range>& out) const {
  for (const Point& s : Of(nodes_[at_(i, j)])) {
    if (!(s == value)) continue;
    out.push_back(BuildNode(builder, i, j, s));
    return;
  }
  for (int m = i; m < j; ++m) {
    for (const Point& u : Of(products_[at_(i, m)])) {
      for (const Point& v : Of(nodes_[at_(m + 1, j)])) {
        if (!(Product(u, v) == value)) continue;
        BuildProduct(builder, i, m, u, out);
        out.push_back(BuildNode(builder, m + 1, j, v));
        return;
      }
    }
  }
  assert(false);
}

// `count` blocks over 1..j.
void TwoColumns::BuildPrefix(PlanBuilder& builder, int count, int j, Point value,
                             std::vector<Range>& out) const {
  if (count == 1) {
    out.push_back(BuildNode(builder, 1, j, value));
    return;
  }
  for (int m = count - 1; m < j; ++m) {
    for (const Point& u : Of(prefixes_[bounds_.Layer(count - 1, m)])) {
      for (const Point& v : Of(nodes_[at_(m + 1, j)])) {
        if (!(Product(u, v) == value)) continue;
        BuildPrefix(builder, count - 1, m, u, out);
        out.push_back(BuildNode(builder, m + 1, j, v));
        return;
      }
    }
  }
  assert(false);
}

std::optional<Plan> TwoColumns::BestPlan() const {
  if (!best_) return std::nullopt;
  PlanBuilder builder(steps_);
  std::vector<Range> blocks;
  BuildPrefix(builder, blocks_, steps_, *best_, blocks);
  absl::StatusOr<Plan> plan = builder.Finish(blocks);
  if (!plan.ok()) return std::nullopt;
  return *std::move(plan);
}

}  // namespace mergeplan::search
