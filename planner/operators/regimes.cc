#include "planner/operators/regimes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

namespace mergeplan {
namespace {

// One row of the table in THEOREMS.md: the strategy has the largest or the least value of all plans
// where the steps before the noisiest are as said.
struct Row {
  Init init;
  enum Steps { kAny, kUpToOne, kFromOne } steps;
  bool largest;
  ProvenStrategy proven;
};

constexpr Row kRows[] = {
    {Init::kChildJump,
     Row::kAny,
     true,
     {Strategy::kBoot, "theorem 1", "with the start child-jump BOOT keeps the most signal"}},
    {Init::kChild,
     Row::kUpToOne,
     false,
     {Strategy::kBoot, "theorem 2", "no step amplifies, and BOOT shrinks most"}},
    {Init::kChild,
     Row::kUpToOne,
     true,
     {Strategy::kConsistency, "theorem 2",
      "no step amplifies, and consistency keeps the most signal"}},
    {Init::kChild,
     Row::kFromOne,
     true,
     {Strategy::kVanilla, "theorem 3",
      "every step before the noisiest amplifies, and vanilla keeps the most of that"}},
    {Init::kJump,
     Row::kAny,
     true,
     {Strategy::kVanilla, "theorem 4",
      "with the start jump all merges over a range start alike, and vanilla has the best target"}},
    {Init::kTeacher,
     Row::kUpToOne,
     false,
     {Strategy::kVanilla, "theorem 4",
      "with the start teacher all merges at a level start alike, and vanilla has the best target"}},
    {Init::kTeacher,
     Row::kFromOne,
     true,
     {Strategy::kVanilla, "theorem 4",
      "with the start teacher all merges at a level start alike, and vanilla has the best target"}},
};

// Does every step t < T keep (kUpToOne), or amplify (kFromOne), dimension k? A factor of exactly
// one is both.
bool StepsAre(const Model& model, Row::Steps steps, int k) {
  for (int t = 1; t < model.steps() && steps != Row::kAny; ++t) {
    const double a = model.A(t)[k];
    if (steps == Row::kUpToOne ? a > 1 : a < 1) return false;
  }
  return true;
}

// The start of a dimension's merges. That of tables is the one that their p and q say at every
// level where a merge can end, if any: theorems 2, 3, 4 (b) and 4 (c) need no schedule.
std::optional<Init> InitOf(const Model& model, int k) {
  if (model.has_schedule()) return model.init();
  const ModelTables& tables = model.tables();
  bool child = true, teacher = true;
  for (int t = 2; t <= model.steps(); ++t) {
    const double p = tables.P(t, k), q = tables.Q(t, k);
    child = child && p == 1 && q == 0;
    teacher = teacher && p == 0 && q == model.A(t)[k];
  }
  if (child) return Init::kChild;
  if (teacher) return Init::kTeacher;
  return std::nullopt;
}

}  // namespace

std::vector<double> Lambda0(const Schedule& schedule) {
  std::vector<double> out;
  for (int t = 1; t < schedule.steps(); ++t) {
    const double noise = schedule.sigma[t] * (schedule.sigma[t] - schedule.sigma[t - 1]);
    const double signal = schedule.alpha[t] * (schedule.alpha[t - 1] - schedule.alpha[t]);
    // A_t > 1 means signal * lambda > noise, and alpha/sigma falls, so that not both are <= 0.
    if (noise <= 0) {
      out.push_back(0);
    } else if (signal <= 0) {
      out.push_back(std::numeric_limits<double>::infinity());
    } else {
      out.push_back(noise / signal);
    }
  }
  return out;
}

Lambda0Range RangeOfLambda0(const Schedule& schedule) {
  const std::vector<double> all = Lambda0(schedule);
  if (all.empty()) return {};
  const auto [least, largest] = std::minmax_element(all.begin(), all.end());
  return {*least, *largest};
}

std::string_view ToString(VarianceRegime regime) {
  switch (regime) {
    case VarianceRegime::kUpToOne:
      return "up to 1";
    case VarianceRegime::kBelow:
      return "1..min lambda0";
    case VarianceRegime::kBetween:
      return "between";
    case VarianceRegime::kAbove:
      break;
  }
  return "above max lambda0";
}

VarianceRegime RegimeOf(double lambda, const Lambda0Range& range) {
  if (lambda <= 1) return VarianceRegime::kUpToOne;
  if (lambda < range.least) return VarianceRegime::kBelow;
  if (lambda > range.largest) return VarianceRegime::kAbove;
  return VarianceRegime::kBetween;
}

std::optional<Strategy> BestScalarStrategy(VarianceRegime regime) {
  switch (regime) {
    case VarianceRegime::kUpToOne:
      return Strategy::kBoot;
    case VarianceRegime::kBelow:
      return Strategy::kConsistency;
    case VarianceRegime::kBetween:
      return std::nullopt;
    case VarianceRegime::kAbove:
      break;
  }
  return Strategy::kVanilla;
}

std::optional<ProvenStrategy> ProvenBest(const Model& model, int blocks) {
  const int T = model.steps();
  if (blocks < 1 || blocks > T) return std::nullopt;
  if (blocks >= T - 1) {
    return ProvenStrategy{Strategy::kVanilla, "no theorem",
                          "at most one merge of two steps is left, the same for every strategy"};
  }

  // What no plan passes: per strategy its own value for one block; else the teacher's product, or
  // for consistency its value, since merging blocks does not lower it ("N blocks").
  std::array<std::vector<double>, std::size(kStrategies)> bounds;
  const auto bound = [&](Strategy strategy) -> const std::vector<double>& {
    std::vector<double>& out = bounds[static_cast<std::size_t>(strategy)];
    if (out.empty()) {
      if (blocks == 1 || strategy == Strategy::kConsistency) {
        out = model.Value(*CanonicalPlan(strategy, T));
      } else {
        const absl::Span<const double> teacher = model.tau(Reference::kTeacher);
        out.assign(teacher.begin(), teacher.end());
      }
    }
    return out;
  };
  const auto best_in = [&](const Row& row, int k) {
    if (!StepsAre(model, row.steps, k)) return false;
    const double tau = model.tau()[k];
    const double value = bound(row.proven.strategy)[k];
    // The delta of Model::Tolerance: a bound that passes tau by this costs less than the tolerance.
    const double rounding = model.Rounding(k, value, tau);
    return row.largest ? value <= tau + rounding : value >= tau - rounding;
  };

  std::vector<std::optional<Init>> init;
  init.reserve(static_cast<size_t>(model.dimensions()));
  for (int k = 0; k < model.dimensions(); ++k) init.push_back(InitOf(model, k));
  // The starts may differ between dimensions of tables; the strategy must not.
  for (const Row& candidate : kRows) {
    bool named = false, everywhere = true;
    for (int k = 0; k < model.dimensions() && everywhere; ++k) {
      named = named || init[k] == candidate.init;
      if (model.objective_weights()[k] == 0) continue;
      everywhere = std::any_of(std::begin(kRows), std::end(kRows), [&](const Row& row) {
        return row.init == init[k] && row.proven.strategy == candidate.proven.strategy &&
               best_in(row, k);
      });
    }
    if (named && everywhere) return candidate.proven;
  }
  return std::nullopt;
}

}  // namespace mergeplan
