#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/operators/canonical.h"
#include "planner/report/arcs.h"
#include "planner/report/style.h"
#include "planner/report/svg.h"
#include "planner/report/text.h"

namespace mergeplan {
namespace {

// Arcs that share an end never cross while the height grows at least as the root of the width; this
// lifts the small ones above what half circles would give them.
constexpr double kHeightPower = 0.72;

std::string RangeText(Range range) {
  return range.single() ? absl::StrCat("step ", range.first)
                        : absl::StrCat("steps ", range.first, "–", range.last);
}

std::string MergeText(const Plan& plan, const Merge& merge) {
  std::string children;
  constexpr size_t kShown = 6;
  for (size_t k = 0; k < merge.children.size(); ++k) {
    if (k == kShown) {
      absl::StrAppend(&children, ", … (", merge.children.size(), " parts)");
      break;
    }
    const Range range = plan.range(merge.children[k]);
    absl::StrAppend(&children, k ? ", " : "", range.first);
    if (!range.single()) absl::StrAppend(&children, "–", range.last);
  }
  return absl::StrCat("merge of ", RangeText(merge.range()), " in round ", merge.round, ": ",
                      children);
}

// The widest block, as a share of all steps.
double WidestShare(const Plan& plan) {
  int widest = 0;
  for (const Range& range : plan.BlockRanges()) {
    widest = std::max(widest, range.last - range.first + 1);
  }
  return static_cast<double>(widest) / std::max(plan.teacher_steps(), 1);
}

// Length of the shortest child, in steps: the dots on the arc are that far apart.
int ClosestBorders(const Plan& plan, const Merge& merge) {
  int closest = plan.teacher_steps();
  for (int child : merge.children) {
    const Range range = plan.range(child);
    closest = std::min(closest, range.last - range.first + 1);
  }
  return closest;
}

}  // namespace

std::string DescribePlan(const Plan& plan) {
  const int steps = plan.teacher_steps();
  const int blocks = plan.student_steps();
  std::string out =
      absl::StrCat(Count(steps, "teacher step"), " into ", Count(blocks, "student step"), ": ");
  if (plan.size() == 0) return absl::StrCat(out, "nothing is merged.");
  absl::StrAppend(&out, Count(plan.size(), "merge"), " in ", Count(plan.rounds(), "round"));
  size_t widest = 0;
  for (const Merge& merge : plan.merges()) widest = std::max(widest, merge.children.size());
  if (widest > 2) {
    absl::StrAppend(&out, ", up to ", widest, " parts at once");
  } else {
    out += ", two parts at a time";
  }
  std::vector<std::string> same;
  for (Strategy strategy : kStrategies) {
    const auto canonical = CanonicalPlan(strategy, steps, blocks);
    if (canonical.ok() && *canonical == plan) same.emplace_back(ToString(strategy));
  }
  if (!same.empty()) absl::StrAppend(&out, "; the same plan as ", Listed(same));
  return absl::StrCat(out, ".");
}

std::string ArcPlotSvg(const Plan& plan, const ArcPicture& picture) {
  const int steps = std::max(plan.teacher_steps(), 1);
  const bool small = picture.small;
  const double width = small ? 300 : 640;
  const double left = small ? 14 : 24, right = width - left;
  const double top = small ? 6 : 8;
  // Full height for an arc over all steps; less where the student keeps several steps.
  const double full = small ? 96 : 232;
  const double arcs = std::max(full * std::pow(WidestShare(plan), kHeightPower), full / 4);
  const double base = top + arcs;
  const double height = base + (small ? 22 : 62);
  const std::string title = picture.title.empty() ? DescribePlan(plan) : picture.title;
  SvgCanvas canvas(width, height, title, small ? "small" : "wide");
  const Scale level = Scale::Linear(0, steps, left, right);
  const double spacing = (right - left) / steps;

  const double stroke =
      std::clamp((small ? 6.0 : 10.0) / std::sqrt(plan.size() + 1.0), 0.35, small ? 1.4 : 1.9);
  const bool tooltips = !small || steps <= 128;
  const double dot = std::clamp(spacing / 5, 1.2, 3.0);
  const auto rise = [&](Range range) {
    const double share = static_cast<double>(range.last - range.first + 1) / steps;
    return std::max(full * std::pow(share, kHeightPower), 1.0);
  };
  // Height of the arc over a range at the place x.
  const auto above = [&](Range range, double x) {
    const double x1 = level(range.first - 1), x2 = level(range.last);
    const double across = (2 * x - x1 - x2) / (x2 - x1);
    return rise(range) * std::sqrt(std::max(0.0, 1 - across * across));
  };
  std::vector<int> parent(plan.size(), -1);
  for (int k = 0; k < plan.size(); ++k) {
    for (int child : plan.merges()[k].children) {
      if (!plan.is_step(child)) parent[child - plan.teacher_steps()] = k;
    }
  }
  canvas.OpenGroup("arcs", absl::StrFormat("stroke-width=\"%.2f\"", stroke));
  for (int m = 0; m < plan.size(); ++m) {
    const Merge& merge = plan.merges()[m];
    const double x1 = level(merge.first - 1), x2 = level(merge.last);
    const std::string shade = RoundClass(merge.round, plan.rounds());
    canvas.Arc(x1, x2, base, rise(merge.range()), absl::StrCat("arc ", shade),
               tooltips ? MergeText(plan, merge) : "");
    if (merge.children.size() < 3 || ClosestBorders(plan, merge) * spacing < 2.6 * dot) continue;
    for (size_t k = 0; k + 1 < merge.children.size(); ++k) {
      const double x = level(plan.range(merge.children[k]).last);
      const double height = above(merge.range(), x);
      // Where this arc runs into the one above, dots would blur.
      if (parent[m] >= 0 && above(plan.merges()[parent[m]].range(), x) - height < dot + 1) continue;
      canvas.Circle({x, base - height}, dot, absl::StrCat("child ", shade));
    }
  }
  canvas.CloseGroup();

  canvas.Line({left, base}, {right, base}, "base");
  if (spacing >= 5) {
    for (int t = 0; t <= steps; ++t) {
      canvas.Circle({level(t), base}, std::min(2.2, spacing / 4), "level");
    }
  }
  if (plan.student_steps() > 1) {
    for (int block : plan.blocks()) {
      const Range range = plan.range(block);
      if (range.last == steps) continue;
      canvas.Line({level(range.last), base - 5}, {level(range.last), base + 5}, "block",
                  absl::StrCat("border between two student steps, at level ", range.last));
    }
  }
  std::vector<int> ticks;
  for (double tick : Scale::Linear(0, steps, 0, 1).Ticks(small ? 5 : 9)) {
    const int t = static_cast<int>(tick + 0.5);
    if (std::abs(tick - t) < 1e-9 && steps - t >= 0.07 * steps) ticks.push_back(t);
  }
  ticks.push_back(steps);
  for (int t : ticks) {
    canvas.Line({level(t), base}, {level(t), base + 4}, "base");
    canvas.Text({level(t), base + 18}, absl::StrCat(t), "tick", "middle");
  }
  if (!small) {
    canvas.Text({left, base + 42}, "clean", "name");
    canvas.Text({right, base + 42}, "noise", "name", "end");
    if (plan.rounds() > 1) {
      const int cells = std::min(plan.rounds(), kRoundShades);
      const double cell = 128.0 / cells, start = width / 2 - 64;
      for (int k = 0; k < cells; ++k) {
        const int shade = k * (kRoundShades - 1) / (cells - 1);
        canvas.Rect(start + k * cell, base + 33, cell + 0.3, 9, absl::StrCat("f", shade));
      }
      canvas.Text({start - 8, base + 42}, "first round", "name", "end");
      canvas.Text({start + 136, base + 42}, "last round", "name");
    }
  }
  return picture.standalone ? canvas.Standalone(ArcCss()) : canvas.Inline();
}

}  // namespace mergeplan
