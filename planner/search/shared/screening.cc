#include "planner/search/shared/screening.h"

#include <algorithm>
#include <utility>

#include "planner/search/parallel.h"
#include "planner/search/shared/allocate.h"

namespace mergeplan::search {
namespace {

std::vector<Target> Representatives(const std::vector<Target>& targets) {
  constexpr std::size_t kMost = 24;
  if (targets.size() <= kMost) return targets;
  std::vector<Target> out;
  for (std::size_t g = 0; g < kMost; ++g) {
    const std::size_t begin = g * targets.size() / kMost;
    const std::size_t end = (g + 1) * targets.size() / kMost;
    out.push_back(targets[(begin + end) / 2]);
    out.back().weight = 0;
    for (std::size_t k = begin; k < end; ++k) out.back().weight += targets[k].weight;
  }
  return out;
}

}  // namespace

Screening::Screening(const Model& model, double total, const std::vector<Target>& targets,
                     double floor, int threads, std::function<bool()> stop,
                     std::function<bool(const Plan&)> fits)
    : problem_(model, total, Representatives(targets)),
      floor_(floor),
      threads_(threads),
      stop_(std::move(stop)),
      fits_(std::move(fits)) {}

Screened Screening::One(const SharedPlan& candidate) const {
  constexpr double kTolerance = 1e-6;
  constexpr int kFewMerges = 3;  // cheap enough to be polished
  Screened out{candidate};
  SharedTree tree(problem_, candidate.plan);
  const int evaluations = static_cast<int>(std::clamp(4e5 / tree.Work(), 6.0, 40.0));
  std::vector<std::vector<double>> starts = StartingShares(candidate.plan);
  if (!candidate.shares.empty()) {
    std::vector<double> blend = candidate.shares;
    for (double& share : blend) share = 0.5 * share + 0.5 / static_cast<double>(blend.size());
    starts.resize(1);
    starts.push_back(candidate.shares);
    starts.push_back(std::move(blend));
  }
  const auto take = [&](Allocation found) {
    if (!(found.objective < out.objective)) return;
    out.objective = found.objective;
    out.plan.shares = std::move(found.shares);
  };
  for (std::vector<double>& start : starts) {
    take(Descend(tree, std::move(start), evaluations, kTolerance, floor_, stop_));
  }
  if (tree.merges() > 1 && tree.merges() <= kFewMerges) {
    take(Polish(tree, {out.plan.shares, out.objective, 0}, evaluations, kTolerance, floor_, stop_));
  }
  return out;
}

std::vector<Screened> Screening::All(const std::vector<SharedPlan>& candidates) {
  std::vector<Screened> out(candidates.size());
  ParallelFor(threads_, static_cast<int>(candidates.size()), [&](int c) {
    if (!stop_()) out[c] = One(candidates[c]);
  });
  plans_ += static_cast<int>(candidates.size());
  std::stable_sort(out.begin(), out.end(),
                   [](const Screened& a, const Screened& b) { return a.objective < b.objective; });
  return out;
}

Screened Screening::Climb(Screened best) {
  constexpr int kRounds = 60;
  constexpr std::size_t kChanges = 400;
  constexpr double kLong = 2e5;
  const bool small = static_cast<double>(problem_.steps()) * (best.plan.plan.size() + 8.0) < kLong;
  for (int round = 0; small && round < kRounds && !stop_(); ++round) {
    std::vector<SharedPlan> changes = LocalChanges(best.plan, kChanges);
    std::erase_if(changes, [&](const SharedPlan& change) {
      return change.plan.size() == 0 || !fits_(change.plan);
    });
    std::vector<Screened> screened = All(changes);
    if (screened.empty() || !(screened[0].objective < best.objective * (1 - 1e-6))) break;
    best = std::move(screened[0]);
  }
  return best;
}

}  // namespace mergeplan::search
