#include "planner/choice/sensitivity.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "planner/operators/canonical.h"
#include "tests/planner/choice/models.h"

namespace mergeplan {
namespace {

using testing::HasSubstr;

SensitivityOptions QuietOptions() {
  SensitivityOptions options;
  options.search.threads = 1;
  return options;
}

Plan Canonical(Strategy strategy, int steps, int blocks = 1) {
  return *CanonicalPlan(strategy, steps, blocks);
}

TEST(Share, WilsonsIntervalAsPublished) {
  // 10 of 20: 0.299 to 0.701; none of 10: 0 to 0.278 (z = 1.96).
  EXPECT_NEAR((Share{10, 20}.low()), 0.2993, 1e-4);
  EXPECT_NEAR((Share{10, 20}.high()), 0.7007, 1e-4);
  EXPECT_EQ((Share{0, 10}.low()), 0);
  EXPECT_NEAR((Share{0, 10}.high()), 0.2775, 1e-4);
  EXPECT_EQ((Share{10, 10}.high()), 1);
  EXPECT_NEAR((Share{10, 10}.low()), 0.7225, 1e-4);
}

TEST(DrawVariances, HaveTheEndsOfTheIntervalAsQuantiles) {
  const std::vector<double> variances = {2.0, 0.5, 1.0, 0.0, 3.0};
  VarianceIntervals intervals;
  intervals.low = {1.5, 0.3, 1.0, 0.0, 0.0};
  intervals.high = {3.0, 0.6, 1.0, 0.0, 4.0};
  intervals.confidence = 0.8;  // quantiles 10 % and 90 %
  constexpr int kDraws = 4000;
  std::vector<int> below(5), under_median(5), above(5);
  for (int draw = 0; draw < kDraws; ++draw) {
    const std::vector<double> v = DrawVariances(variances, intervals, 7, draw);
    ASSERT_EQ(v.size(), variances.size());
    for (std::size_t k = 0; k < 5; ++k) {
      below[k] += v[k] < intervals.low[k];
      under_median[k] += v[k] < variances[k];
      above[k] += v[k] > intervals.high[k];
    }
    EXPECT_EQ(v[2], 1.0);  // of no width
    EXPECT_EQ(v[3], 0.0);
    EXPECT_GT(v[4], 0.0);
  }
  const double spread = 4 * std::sqrt(0.1 * 0.9 * kDraws), half = 4 * std::sqrt(0.25 * kDraws);
  for (const std::size_t k : {0, 1}) {
    EXPECT_NEAR(below[k], 0.1 * kDraws, spread) << k;
    EXPECT_NEAR(above[k], 0.1 * kDraws, spread) << k;
    EXPECT_NEAR(under_median[k], 0.5 * kDraws, half) << k;
  }
  // A lower end of 0 is as far below, in ratio, as the upper end is above.
  EXPECT_NEAR(above[4], 0.1 * kDraws, spread);
  int far = 0;
  for (int draw = 0; draw < kDraws; ++draw)
    far += DrawVariances(variances, intervals, 7, draw)[4] < 3.0 * 3.0 / 4.0;
  EXPECT_NEAR(far, 0.1 * kDraws, spread);
}

TEST(DrawVariances, FollowSeedAndNumberOnly) {
  const std::vector<double> variances = {2.0, 0.5};
  const VarianceIntervals intervals = RelativeIntervals(variances, 0.2);
  EXPECT_EQ(DrawVariances(variances, intervals, 3, 5), DrawVariances(variances, intervals, 3, 5));
  EXPECT_NE(DrawVariances(variances, intervals, 3, 5), DrawVariances(variances, intervals, 3, 6));
  EXPECT_NE(DrawVariances(variances, intervals, 3, 5), DrawVariances(variances, intervals, 4, 5));
  EXPECT_EQ(intervals.low[0], 2.0 / 1.2);
  EXPECT_EQ(intervals.high[1], 0.5 * 1.2);
}

// Both variances stay below 1, where BOOT is proven best.
TEST(Sensitivity, APlanThatATheoremProvesIsNeverBeaten) {
  const std::vector<double> variances = {0.1, 0.5};
  const Model model = ModelFor("cosine", 12, variances);
  const absl::StatusOr<Sensitivity> s =
      AnalyzeSensitivity(model, RelativeIntervals(variances, 0.1), Canonical(Strategy::kBoot, 12),
                         "plan", QuietOptions());
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->draws, 200);
  EXPECT_EQ(s->not_beaten.count, 200);
  EXPECT_GT(s->lead.p5, 0);
  EXPECT_LE(s->lead.p5, s->lead.median);
  EXPECT_LE(s->lead.median, s->lead.p95);
  EXPECT_EQ(s->replans, 8);
  EXPECT_EQ(s->regret_largest, 0);
  // One candidate for all names of BOOT, the plans made anew included.
  EXPECT_THAT(s->candidates[0].names, testing::IsSupersetOf({"plan", "boot", "draw 1", "draw 8"}));
  EXPECT_EQ(s->candidates.size(), 4U);
  EXPECT_EQ(s->candidates[0].best.count, 200);
  EXPECT_EQ(s->candidates[0].best_strategy.count, 200);
}

// Limits on merges and rounds hold for what a plan is compared with, too.
TEST(Sensitivity, StrategiesThatTheLimitsExcludeAreNoRivals) {
  const std::vector<double> variances = {0.1, 0.5};
  const int steps = 12;
  const Model model = ModelFor("cosine", steps, variances);
  const VarianceIntervals intervals = RelativeIntervals(variances, 0.1);
  const Plan vanilla = Canonical(Strategy::kVanilla, steps);
  SensitivityOptions options = QuietOptions();
  const auto analyze = [&](int merges, int rounds, const Plan& plan) {
    options.search.max_merges = merges;
    options.search.max_rounds = rounds;
    return *AnalyzeSensitivity(model, intervals, plan, "plan", options);
  };
  // BOOT beats vanilla here.
  EXPECT_EQ(analyze(0, 0, vanilla).not_beaten.count, 0);
  EXPECT_TRUE(analyze(0, 0, vanilla).not_allowed.empty());
  // BOOT and consistency have 11 rounds, progressive has 4 rounds of 11 merges in all.
  const Sensitivity four = analyze(0, 4, vanilla);
  EXPECT_THAT(four.not_allowed, testing::ElementsAre("boot", "consistency"));
  EXPECT_EQ(four.not_beaten.of, 200);
  EXPECT_EQ(four.not_beaten.count, 200);  // by progressive, which is left
  for (const Sensitivity::Candidate& c : four.candidates) {
    EXPECT_LE(c.plan.rounds(), 4);
    EXPECT_THAT(c.names, testing::Not(testing::Contains("boot")));
  }
  const Sensitivity one = analyze(1, 0, vanilla);
  EXPECT_THAT(one.not_allowed, testing::ElementsAre("progressive", "boot", "consistency"));
  EXPECT_EQ(one.not_beaten.of, 0);  // no rival
  // A plan made within the limits is ahead of all that are within them.
  SearchOptions search = options.search;
  search.max_merges = 3;
  search.max_rounds = 0;
  search.gap = 0;
  const Sensitivity three = analyze(3, 0, Solve(model, search)->plan);
  EXPECT_EQ(three.not_beaten.count, 200);
}

// Counted by hand from the same draws.
TEST(Sensitivity, SharesLeadAndRegretAreThoseOfTheDraws) {
  const std::vector<double> variances = {0.7, 1.9};
  const int steps = 10;
  const Model model = ModelFor("cosine", steps, variances);
  const VarianceIntervals intervals = RelativeIntervals(variances, 0.5);
  SensitivityOptions options = QuietOptions();
  options.draws = 60;
  options.replans = 3;
  const Plan plan = Canonical(Strategy::kVanilla, steps);
  const absl::StatusOr<Sensitivity> s = AnalyzeSensitivity(model, intervals, plan, "mine", options);
  ASSERT_TRUE(s.ok()) << s.status();
  std::vector<int> best(4);
  int not_beaten = 0;
  std::vector<double> leads;
  for (int draw = 0; draw < 60; ++draw) {
    const Model drawn =
        ModelFor("cosine", steps, DrawVariances(variances, intervals, options.seed, draw));
    std::vector<double> objective;
    for (const Strategy strategy : kStrategies)
      objective.push_back(drawn.Objective(Canonical(strategy, steps)));
    ++best[static_cast<std::size_t>(std::min_element(objective.begin(), objective.end()) -
                                    objective.begin())];
    const double rival = *std::min_element(objective.begin() + 1, objective.end());
    not_beaten += objective[0] <= rival;
    leads.push_back((rival - objective[0]) / std::max(rival, objective[0]));
  }
  std::sort(leads.begin(), leads.end());
  EXPECT_EQ(s->not_beaten.count, not_beaten);
  EXPECT_GT(not_beaten, 0);
  EXPECT_LT(not_beaten, 60);
  EXPECT_DOUBLE_EQ(s->lead.median, (leads[29] + leads[30]) / 2);
  int found = 0;
  for (const Sensitivity::Candidate& c : s->candidates) {
    for (std::size_t k = 0; k < 4; ++k) {
      const std::string name(ToString(kStrategies[k]));
      if (std::find(c.names.begin(), c.names.end(), name) == c.names.end()) continue;
      EXPECT_EQ(c.best_strategy.count, best[k]) << name;
      EXPECT_EQ(c.best_strategy.of, 60);
      EXPECT_EQ(c.objective, model.Objective(Canonical(kStrategies[k], steps)));
      ++found;
    }
  }
  EXPECT_EQ(found, 4);
  // Planning anew is never worse than what it is compared with, nor better than its bound.
  EXPECT_EQ(s->replans, 3);
  EXPECT_GT(s->regret_largest, 0);
  EXPECT_LE(s->regret_median, s->regret_largest);
  EXPECT_LE(s->regret_largest, s->regret_bound);
  int sum = 0;
  for (const Sensitivity::Candidate& c : s->candidates) sum += c.best.count;
  EXPECT_EQ(sum, 60);
}

TEST(Sensitivity, IsTheSameWithAnyNumberOfThreads) {
  const std::vector<double> variances = {0.3, 0.9, 1.4, 2.5};
  const Model model = ModelFor("cosine", 10, variances);
  const VarianceIntervals intervals = RelativeIntervals(variances, 0.3);
  SensitivityOptions options = QuietOptions();
  options.draws = 50;
  const auto run = [&](int threads, std::uint64_t seed) {
    options.search.threads = threads;
    options.seed = seed;
    return *AnalyzeSensitivity(model, intervals, Canonical(Strategy::kBoot, 10), "plan", options);
  };
  const Sensitivity one = run(1, 9), three = run(3, 9), other = run(1, 10);
  EXPECT_EQ(one.lead.median, three.lead.median);
  EXPECT_EQ(one.not_beaten.count, three.not_beaten.count);
  EXPECT_EQ(one.regret_bound, three.regret_bound);
  ASSERT_EQ(one.candidates.size(), three.candidates.size());
  for (std::size_t c = 0; c < one.candidates.size(); ++c)
    EXPECT_EQ(one.candidates[c].best.count, three.candidates[c].best.count);
  EXPECT_NE(one.lead.median, other.lead.median);
}

// With one merge of two steps all strategies are one plan.
TEST(Sensitivity, WithoutRivalsNothingIsSaidOfALead) {
  const std::vector<double> variances = {0.5};
  const absl::StatusOr<Sensitivity> s =
      AnalyzeSensitivity(ModelFor("cosine", 2, variances), RelativeIntervals(variances, 0.1),
                         Canonical(Strategy::kBoot, 2), "plan", QuietOptions());
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->candidates.size(), 1U);
  EXPECT_EQ(s->not_beaten.of, 0);
  EXPECT_EQ(s->draws, 200);
}

TEST(Sensitivity, DrawsThatTheRateIsTooLargeForAreCounted) {
  const std::vector<double> variances = {1.0, 2.0};
  // lr n < 1/2 holds up to n = 2.5 only.
  const Model model = ModelFor("cosine", 6, variances, Budget::Sgd(0.2, 10));
  const absl::StatusOr<Sensitivity> s =
      AnalyzeSensitivity(model, RelativeIntervals(variances, 0.5), Canonical(Strategy::kBoot, 6),
                         "plan", QuietOptions());
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_GT(s->refused, 0);
  EXPECT_GT(s->draws, 100);
  EXPECT_EQ(s->draws + s->refused, 200);
}

TEST(Sensitivity, InterruptedItSaysWhatItHas) {
  const std::vector<double> variances = {0.5, 2};
  SensitivityOptions options = QuietOptions();
  options.search.interrupted = [] { return true; };
  const absl::StatusOr<Sensitivity> s =
      AnalyzeSensitivity(ModelFor("cosine", 6, variances), RelativeIntervals(variances, 0.1),
                         Canonical(Strategy::kBoot, 6), "plan", options);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->draws, 0);
  EXPECT_EQ(s->asked, 200);
}

TEST(Sensitivity, WrongArgumentsAreNamed) {
  const std::vector<double> variances = {0.5, 2};
  const Model model = ModelFor("cosine", 6, variances);
  const Plan plan = Canonical(Strategy::kBoot, 6);
  const VarianceIntervals good = RelativeIntervals(variances, 0.1);
  const auto message = [&](const VarianceIntervals& intervals, const Plan& p,
                           const SensitivityOptions& options) {
    const absl::Status status = AnalyzeSensitivity(model, intervals, p, "plan", options).status();
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  };
  VarianceIntervals bad = good;
  bad.low.pop_back();
  EXPECT_THAT(message(bad, plan, QuietOptions()), HasSubstr("1 and 2 dimensions for 2 variances"));
  bad = good;
  bad.low[1] = 2.1;
  EXPECT_THAT(message(bad, plan, QuietOptions()), HasSubstr("interval 2 is [2.1, 2.2]"));
  bad = good;
  bad.confidence = 1;
  EXPECT_THAT(message(bad, plan, QuietOptions()), HasSubstr("confidence is 1"));
  SensitivityOptions none = QuietOptions();
  none.draws = 0;
  EXPECT_THAT(message(good, plan, none), HasSubstr("0 draws"));
  EXPECT_THAT(message(good, Canonical(Strategy::kBoot, 5), QuietOptions()),
              HasSubstr("the plan has 5 steps, the model 6"));
}

}  // namespace
}  // namespace mergeplan
