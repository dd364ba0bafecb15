#pragma once

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "planner/plan/plan.h"

namespace mergeplan {

// `parts` consecutive ranges that cut `whole`, at random borders.
inline std::vector<Range> RandomCut(Range whole, int parts, std::mt19937_64& random) {
  std::vector<int> borders;
  for (int t = whole.first + 1; t <= whole.last; ++t) borders.push_back(t);
  std::shuffle(borders.begin(), borders.end(), random);
  borders.resize(parts - 1);
  borders.push_back(whole.first);
  borders.push_back(whole.last + 1);
  std::sort(borders.begin(), borders.end());
  std::vector<Range> out;
  for (size_t k = 0; k + 1 < borders.size(); ++k) out.push_back({borders[k], borders[k + 1] - 1});
  return out;
}

// A random plan as people would write it: blocks, and merges in random order.
struct RandomSpecs {
  std::vector<MergeSpec> merges;
  std::vector<Range> blocks;
};
inline RandomSpecs RandomPlanSpecs(int teacher_steps, std::mt19937_64& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  RandomSpecs out;
  const int blocks = below(2) == 0 ? 1 : 1 + below(std::min(teacher_steps, 5));
  out.blocks = RandomCut({1, teacher_steps}, blocks, random);
  std::vector<Range> open = out.blocks;
  while (!open.empty()) {
    const Range range = open.back();
    open.pop_back();
    if (range.single()) continue;
    const int length = range.last - range.first + 1;
    const int most = below(3) == 0 ? length : 2 + below(std::min(length - 1, 4));
    MergeSpec spec{range, RandomCut(range, std::clamp(most, 2, length), random)};
    open.insert(open.end(), spec.children.begin(), spec.children.end());
    out.merges.push_back(std::move(spec));
  }
  std::shuffle(out.merges.begin(), out.merges.end(), random);
  return out;
}

inline std::vector<MergeSpec> BootSpecs(int teacher_steps) {
  std::vector<MergeSpec> out;
  for (int t = teacher_steps - 1; t >= 1; --t) {
    out.push_back({{t, teacher_steps}, {{t, t}, {t + 1, teacher_steps}}});
  }
  return out;
}

}  // namespace mergeplan
