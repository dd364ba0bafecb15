#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace mergeplan {

struct ArcPicture {
  std::string title;       // for screen readers and as tooltip; empty: DescribePlan
  bool standalone = true;  // a file of its own; else an <svg> for a page with the report's style
  bool small = false;      // a thumbnail: no legend, no tooltips on arcs beyond 128 steps
};

// The plan as arcs: the noise levels 0 (clean, left) .. T (noise, right) on a line, one arc of
// class "arc" per merge over the levels that it jumps, the round of training as its shade (light
// first, dark last) and, where a merge joins three or more parts and there is room, a dot on the
// arc above each border between them. Blocks of a student of several steps are parted by ticks. Any
// T; O(T).
std::string ArcPlotSvg(const Plan& plan, const ArcPicture& picture = {});

struct ArcText {
  bool ascii = false;  // + - | instead of box characters
  int max_rows = 20;   // rows for arcs; more rounds than that share rows, and a line says so
};

// The same in a terminal, followed by the plan in words. No line is wider than `columns` (at least
// 24); O(T + rows columns) plus O(merges) per row that an arc's legs cross.
std::string ArcPlotText(const Plan& plan, int columns, const ArcText& options = {});

// One sentence: "31 merges in 31 rounds, one block; the same as boot." Names the canonical strategy
// where the plan is one. O(T).
std::string DescribePlan(const Plan& plan);

}  // namespace mergeplan
