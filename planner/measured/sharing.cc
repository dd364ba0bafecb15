#include "planner/measured/sharing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "planner/measured/plan_error.h"

namespace mergeplan {

Curve ConvexBelow(const Curve& curve) {
  Curve out;
  const auto add = [&out](Curve::Knot knot) {
    auto& k = out.knots;
    // Drops the middle one of three knots where it is on or above the line between the others.
    while (k.size() >= 2) {
      const Curve::Knot& x = k[k.size() - 2];
      const Curve::Knot& y = k.back();
      const double to_y = (y.left - x.left) / static_cast<double>(y.updates - x.updates);
      const double to_knot = (knot.left - y.left) / static_cast<double>(knot.updates - y.updates);
      if (to_y < to_knot) break;
      k.pop_back();
    }
    k.push_back(knot);
  };
  add({1, curve.At(1)});
  for (const Curve::Knot& knot : curve.knots) {
    if (knot.updates > 1) add(knot);
  }
  return out;
}

std::int64_t UpdatesWorth(const Curve& left, Combine combine, double factor, double distance,
                          double price, std::int64_t most) {
  double scale = factor * (combine == Combine::kSum ? distance : distance * distance);
  constexpr double kLargest = std::numeric_limits<double>::max();
  if (!(scale <= kLargest)) scale = kLargest;  // an overflow; infinity times 0 would be no number
  for (size_t n = 0; n + 1 < left.knots.size(); ++n) {
    const Curve::Knot& a = left.knots[n];
    const Curve::Knot& b = left.knots[n + 1];
    const double drop = (a.left - b.left) / static_cast<double>(b.updates - a.updates);
    // The cost falls from u to u + 1 by this much, a.updates <= u < b.updates. No difference of
    // nearly equal numbers.
    const auto falls = [&](std::int64_t u) {
      if (combine == Combine::kSum) return scale * drop;
      return scale * drop * (2 * a.left - drop * static_cast<double>(2 * (u - a.updates) + 1));
    };
    if (falls(b.updates - 1) > price) continue;
    std::int64_t low = a.updates, high = b.updates - 1;  // the answer is in [low, high]
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (falls(middle) <= price) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return std::min(low, most);
  }
  return std::min(left.knots.back().updates, most);
}

std::vector<double> PathFactors(const MeasuredModel& model, const Plan& plan, Combine combine) {
  std::vector<double> out(plan.size(), 0.0);
  const int steps = plan.teacher_steps();
  const auto factor = [&](int i, int node) {
    return GainFactor(combine, model.Gain(i, plan.range(node).first - 1).At(model.values()));
  };
  for (const int block : plan.blocks()) {
    if (!plan.is_step(block)) out[block - steps] = factor(1, block);
  }
  for (int k = plan.size() - 1; k >= 0; --k) {  // parents stand after children
    const Merge& merge = plan.merges()[k];
    for (const int child : merge.children) {
      if (!plan.is_step(child)) out[child - steps] = out[k] * factor(merge.first, child);
    }
  }
  return out;
}

absl::StatusOr<std::vector<std::int64_t>> ShareUpdates(const MeasuredModel& model, const Plan& plan,
                                                       Combine combine, std::int64_t total) {
  const int merges = plan.size();
  if (total < merges) {
    return absl::InvalidArgumentError(
        absl::StrCat(total, " updates for ", merges, " merges; expected at least one for each"));
  }
  if (merges == 0) return std::vector<std::int64_t>{};
  const std::vector<double> factors = PathFactors(model, plan, combine);
  std::vector<Curve> curves;
  std::vector<double> distances;
  for (const Merge& merge : plan.merges()) {
    curves.push_back(ConvexBelow(model.ResidualCurve(merge.first, merge.last, model.values())));
    distances.push_back(
        model.Distance(merge.first, StartOf(plan, merge), merge.last).At(model.values()));
  }
  const auto worth = [&](double price) {
    std::vector<std::int64_t> out(merges);
    for (int k = 0; k < merges; ++k) {
      out[k] = UpdatesWorth(curves[k], combine, factors[k], distances[k], price, total);
    }
    return out;
  };
  const auto fits = [&](const std::vector<std::int64_t>& updates) {
    std::int64_t sum = 0;
    for (const std::int64_t u : updates) {
      sum += u;
      if (sum > total) return false;
    }
    return true;
  };
  // The least price at which the merges want no more than there is, among all floating-point
  // numbers: those that are not negative are ordered as their bits are. At an infinite price each
  // wants one update.
  std::uint64_t low = 0;
  std::uint64_t high = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::infinity());
  if (fits(worth(0))) {
    high = 0;
  } else {
    while (high - low > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      (fits(worth(std::bit_cast<double>(middle))) ? high : low) = middle;
    }
  }
  std::vector<std::int64_t> updates = worth(std::bit_cast<double>(high));
  std::int64_t left = total;
  for (const std::int64_t u : updates) left -= u;
  if (high > 0) {
    // The merges that want more at the next lower price get it, the first ones first: each of these
    // updates is worth exactly `high`.
    const std::vector<std::int64_t> more = worth(std::bit_cast<double>(low));
    for (int k = 0; k < merges && left > 0; ++k) {
      const std::int64_t extra = std::clamp<std::int64_t>(more[k] - updates[k], 0, left);
      updates[k] += extra;
      left -= extra;
    }
  }
  updates.back() += left;
  return updates;
}

}  // namespace mergeplan
