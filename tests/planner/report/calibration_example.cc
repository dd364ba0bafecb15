#include "tests/planner/report/calibration_example.h"

#include <cmath>

#include "planner/operators/canonical.h"

namespace mergeplan {
namespace {

constexpr int kSteps = 8;

ErrorRange Around(double value, double share = 0.2) {
  return {value, value * (1 - share), value * (1 + share)};
}
double Distance(int first, int start, int last) {
  return 0.02 * (last - first + 1) * (1 + 0.1 * last) * (start < last ? 0.4 : 1);
}
double Residual(int length, double updates) { return 0.1 + 0.9 / (1 + updates / (10.0 * length)); }

CalibrationPilot MakePilot(Range range, std::vector<Range> trained, int replicate, bool held_out) {
  CalibrationPilot out;
  out.range = range;
  out.trained = std::move(trained);
  out.replicate = replicate;
  out.held_out = held_out;
  out.start = Distance(range.first, out.trained.empty() ? range.last : range.first, range.last);
  for (const int updates : {5, 10, 20, 40, 80, 150}) {
    const double fitted = out.start * Residual(range.last - range.first + 1, updates);
    out.updates.push_back(updates);
    out.fitted.push_back(Around(fitted));
    out.error.push_back(fitted * (1 + 0.06 * std::sin(updates + 3.0 * replicate + range.last)));
    out.standard_error.push_back(0.02 * fitted);
  }
  return out;
}

}  // namespace

CalibrationPage MakeCalibration() {
  CalibrationPage page;
  page.title = "Calibration of a small U-Net";
  page.tables.teacher_steps = kSteps;
  page.tables.combine = Combine::kRms;
  page.tables.source = "mergeplan calibrate: unet:models/<small>, 18 pilots";
  const auto add = [](std::vector<MeasuredEntry>& list, MeasuredEntry e, double value) {
    e.value = value, e.low = 0.85 * value, e.high = 1.2 * value;
    list.push_back(e);
  };
  for (int first = 1; first <= kSteps; ++first) {
    for (int last = first; last <= kSteps; ++last) {
      const int length = last - first + 1;
      if (last < kSteps) add(page.tables.gain, {.first = first, .last = last}, 1.0 / length + 0.3);
      if (length < 2) continue;
      for (const int start : {first + 1, last}) {
        if (start == last && first + 1 == last && !page.tables.distance.empty() &&
            page.tables.distance.back().last == last) {
          continue;
        }
        add(page.tables.distance, {.first = first, .last = last, .start = start},
            Distance(first, start, last));
      }
      add(page.tables.floor, {.first = first, .last = last}, 0.004 * length);
      for (const std::int64_t updates : {40, 150}) {
        MeasuredEntry entry{.first = first, .last = last};
        entry.updates = updates;
        add(page.tables.residual, entry, Residual(length, static_cast<double>(updates)));
      }
    }
  }
  page.teacher = "unet:models/<small>";
  page.start = "child-jump";
  page.inputs = "rollout";
  page.training = "adam with rate 0.0002, batch 8";
  page.iterations = page.pilot_updates = 150;
  page.updates = 2400, page.teacher_calls = 61234, page.seconds = 400;
  page.factor = 1.17, page.linear_factor = 1.73, page.other_rule_factor = 1.41;
  page.judged_merges = 5, page.within = 4, page.linear_time = 0.31;
  page.spread = 0.06, page.spread_of_seeds = true, page.floor_share = 0.4;
  for (const Range range : {Range{1, 2}, Range{7, 8}, Range{1, 4}, Range{5, 8}, Range{1, 8}}) {
    for (const int seed : {0, 1}) page.pilots.push_back(MakePilot(range, {}, seed, false));
  }
  page.pilots.push_back(MakePilot({1, 8}, {{2, 8}}, 0, false));
  for (const auto& [range, trained] : {std::pair{Range{3, 5}, std::vector<Range>{}},
                                       {Range{4, 8}, {}},
                                       {Range{1, 8}, {{5, 8}}},
                                       {Range{1, 8}, {{1, 4}, {5, 8}}},
                                       {Range{1, 5}, {{1, 2}}}}) {
    page.pilots.push_back(MakePilot(range, trained, 0, true));
    CalibrationJudged judged;
    judged.range = range, judged.trained = trained;
    judged.measured = page.pilots.back().error.back() * 1.1;
    judged.standard_error = 0.02 * judged.measured;
    judged.predicted = Around(page.pilots.back().fitted.back().value * 1.2);
    judged.linear = judged.measured * (range.first + 0.4);
    page.judged.push_back(judged);
  }
  page.judged.push_back(page.judged.back());
  page.judged.back().range = {1, 8};
  page.judged.back().trained = {{2, 8}};
  page.judged.back().held_out = false;
  PlanBuilder builder(kSteps);
  const Range noisy = builder.Merge({{5, 5}, {6, 6}, {7, 7}, {8, 8}});
  const Range whole = builder.Merge({{1, 1}, {2, 2}, {3, 3}, {4, 4}, noisy});
  const std::vector<Range> block = {whole};
  page.plans.push_back(
      {"measured plan", builder.Finish(block).value(), Around(0.021), Around(0.02), 0.05});
  page.plans.push_back({"linear plan", CanonicalPlan(Strategy::kBoot, kSteps, 1).value(),
                        Around(0.026), Around(0.026), 0.03});
  page.plans.push_back({"vanilla", CanonicalPlan(Strategy::kVanilla, kSteps, 1).value(),
                        Around(0.041), std::nullopt, 0.08});
  page.better_in_draws = 0.93;
  page.files = {"measured.toml", "measured.npz", "plan <1>.toml"};
  return page;
}

}  // namespace mergeplan
