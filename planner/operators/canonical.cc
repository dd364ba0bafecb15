#include "planner/operators/canonical.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mergeplan {
namespace {

Range Vanilla(PlanBuilder& builder, Range range) {
  std::vector<Range> steps;
  for (int t = range.first; t <= range.last; ++t) steps.push_back(PlanBuilder::Step(t));
  return builder.Merge(std::move(steps));
}

Range Progressive(PlanBuilder& builder, Range range) {
  std::vector<Range> level;
  for (int t = range.first; t <= range.last; ++t) level.push_back(PlanBuilder::Step(t));
  while (level.size() > 1) {
    std::vector<Range> next;
    for (size_t k = 0; k + 1 < level.size(); k += 2)
      next.push_back(builder.Merge({level[k], level[k + 1]}));
    if (level.size() % 2 == 1) next.push_back(level.back());
    level = std::move(next);
  }
  return level.front();
}

Range Boot(PlanBuilder& builder, Range range) {
  Range rest = PlanBuilder::Step(range.last);
  for (int t = range.last - 1; t >= range.first; --t)
    rest = builder.Merge({PlanBuilder::Step(t), rest});
  return rest;
}

Range Consistency(PlanBuilder& builder, Range range) {
  Range rest = PlanBuilder::Step(range.first);
  for (int t = range.first + 1; t <= range.last; ++t)
    rest = builder.Merge({rest, PlanBuilder::Step(t)});
  return rest;
}

}  // namespace

std::string_view ToString(Strategy strategy) {
  switch (strategy) {
    case Strategy::kVanilla:
      return "vanilla";
    case Strategy::kProgressive:
      return "progressive";
    case Strategy::kBoot:
      return "boot";
    case Strategy::kConsistency:
      break;
  }
  return "consistency";
}

absl::StatusOr<Strategy> ParseStrategy(std::string_view word) {
  for (Strategy s : kStrategies) {
    if (ToString(s) == word) return s;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("strategy: unknown word \"", std::string(word),
                   "\", expected vanilla, progressive, boot or consistency"));
}

std::vector<Range> EqualBlocks(int teacher_steps, int blocks) {
  std::vector<Range> out;
  int begin = 1;
  for (int k = 1; k <= blocks; ++k) {
    const int end =
        static_cast<int>(std::floor(static_cast<double>(k) * teacher_steps / blocks + 0.5));
    out.push_back({begin, end});
    begin = end + 1;
  }
  return out;
}

absl::StatusOr<Plan> CanonicalPlan(Strategy strategy, int teacher_steps, int blocks) {
  if (teacher_steps < 1 || blocks < 1 || blocks > teacher_steps) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%d student steps from %d teacher steps: expected 1 <= student steps <= teacher steps",
        blocks, teacher_steps));
  }
  PlanBuilder builder(teacher_steps);
  std::vector<Range> tops;
  for (const Range& range : EqualBlocks(teacher_steps, blocks)) {
    if (range.single()) {
      tops.push_back(range);
      continue;
    }
    switch (strategy) {
      case Strategy::kVanilla:
        tops.push_back(Vanilla(builder, range));
        break;
      case Strategy::kProgressive:
        tops.push_back(Progressive(builder, range));
        break;
      case Strategy::kBoot:
        tops.push_back(Boot(builder, range));
        break;
      case Strategy::kConsistency:
        tops.push_back(Consistency(builder, range));
        break;
    }
  }
  return builder.Finish(tops);
}

}  // namespace mergeplan
