// Tables from measurements: networks whose g, r, f and Lambda are known are found again.
#include "adapters/calibrate/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "adapters/calibrate/answer.h"
#include "adapters/calibrate/judge.h"
#include "planner/measured/model.h"
#include "planner/operators/canonical.h"
#include "tests/adapters/calibrate/synthetic.h"

namespace mergeplan::calibrate {
namespace {

using testing::DesignFor;
using testing::Law;
using testing::Measure;

// Distances that shrink with what the child covers; what is not learnt is a part of the distance
// that falls by powers with length and place; gains fall with the length.
Law Known() {
  Law law;
  law.distance = [](int i, int a, int j) {
    return 0.2 * std::pow(j - i + 1, 0.8) * (1 - 0.7 * (j - a) / static_cast<double>(j - i));
  };
  law.left = [](double u) { return std::sqrt(0.7 * std::exp(-u / 4) + 0.3 * std::exp(-u / 32)); };
  law.floor = [distance = law.distance](int i, int j) { return 0.3 * distance(i, j, j); };
  law.gain = [](int i, int m) { return std::pow(0.95, m - i + 1); };
  return law;
}

FitOptions Options(std::int64_t updates) {
  FitOptions options;
  options.iterations = updates;
  options.most_updates = 4 * updates;
  return options;
}

TEST(FitTables, RecoversAKnownNetwork) {
  const int T = 8;
  Law law = Known();
  law.data_scale = 2;
  const Measurements m = Measure(law, DesignFor(T, 1, 256), T);
  const Fit fit = *FitTables(m, Combine::kRms, Options(256));
  const MeasuredModel model = *MeasuredModel::Create(fit.tables);
  EXPECT_TRUE(fit.floor_share_measured);
  EXPECT_NEAR(fit.floor_share, 1, 0.02);
  for (int i = 1; i <= T; ++i) {
    for (int j = i + 1; j <= T; ++j) {
      const double floor = law.floor(i, j);
      EXPECT_NEAR(model.Floor(i, j).At(model.values()), floor, 0.02 * floor);
      for (int a = i + 1; a <= j; ++a) {
        const double distance = law.distance(i, a, j);
        EXPECT_NEAR(model.Distance(i, a, j).At(model.values()), distance, 1e-9 * distance);
      }
      for (const int u : {4, 16, 64}) {
        EXPECT_NEAR(model.Residual(i, j, u).At(model.values()), law.left(u), 0.03) << u;
      }
      // Before the first knot, and beyond what was trained.
      EXPECT_NEAR(model.Residual(i, j, 1000).At(model.values()), 0, 0.03);
    }
  }
  for (int i = 1; i < T; ++i) {
    for (int k = i; k < T; ++k) {
      EXPECT_NEAR(model.Gain(i, k).At(model.values()), law.gain(i, k), 1e-9);
    }
  }
}

// By the sum, the same errors are the same errors: r g + f of merges of steps is what was measured.
TEST(FitTables, KeepsMeasuredErrorsByBothRules) {
  const int T = 8;
  const Measurements m = Measure(Known(), DesignFor(T, 1, 128), T);
  for (const Combine combine : {Combine::kSum, Combine::kRms}) {
    const Fit fit = *FitTables(m, combine, Options(128));
    const MeasuredModel model = *MeasuredModel::Create(fit.tables);
    for (const PilotResult& r : m.pilots) {
      if (r.pilot.held_out || !r.pilot.trained.empty()) continue;
      for (std::size_t k = 0; k < r.updates.size(); ++k) {
        const double measured = std::sqrt(r.error[k]);
        EXPECT_NEAR(PredictPilot(model, combine, r.pilot, r.updates[k]).value, measured,
                    0.02 * measured)
            << r.pilot.ToString() << " after " << r.updates[k];
      }
    }
  }
}

// What belongs to the start and what to the merge: told by merges that start near their target.
TEST(FitTables, TellsFloorsFromSlowLearning) {
  const int T = 8;
  Law slow = Known();
  slow.left = [](double) { return 0.5; };  // nothing learns further, but all of it is the start's
  slow.floor = [](int, int) { return 0.0; };
  const Fit of_start = *FitTables(Measure(slow, DesignFor(T), T), Combine::kRms, Options(128));
  EXPECT_LT(of_start.floor_share, 0.15);
  Law capacity = slow;
  capacity.left = [](double) { return 0.0; };
  capacity.floor = [g = slow.distance](int i, int j) { return 0.5 * g(i, j, j); };
  const Fit of_merge = *FitTables(Measure(capacity, DesignFor(T), T), Combine::kRms, Options(128));
  EXPECT_GT(of_merge.floor_share, 0.9);
}

TEST(FitTables, AreWholeForAnySteps) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> uniform(0.5, 2);
  for (const int T : {2, 3, 4, 5, 7, 16, 17, 23, 40, 64}) {
    for (const int N : {1, 2, 4}) {
      if (N >= T) continue;
      for (const int replicates : {1, 2}) {
        const Design design = DesignFor(T, N, 50, replicates);
        const Measurements m = Measure(Known(), design, T, [&] { return uniform(random); });
        ASSERT_TRUE(CanFit(m)) << T;
        for (const Combine combine : {Combine::kSum, Combine::kRms}) {
          const absl::StatusOr<Fit> fit = FitTables(m, combine, Options(50));
          ASSERT_TRUE(fit.ok()) << fit.status();
          const auto model = MeasuredModel::Create(fit->tables);
          ASSERT_TRUE(model.ok()) << "T " << T << " N " << N << ": " << model.status();
          EXPECT_EQ(fit->spread_freedom > 0, replicates > 1);
        }
      }
    }
  }
}

TEST(FitTables, IntervalsHoldOtherTrainings) {
  const int T = 8;
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal(0, 0.05);
  const auto noise = [&] { return std::exp(normal(random)); };
  int inside = 0, all = 0;
  for (int trial = 0; trial < 40; ++trial) {
    const Measurements m = Measure(Known(), DesignFor(T, 1, 128, 2), T, noise);
    const Fit fit = *FitTables(m, Combine::kRms, Options(128));
    EXPECT_GT(fit.spread, 0.01);
    const MeasuredModel model = *MeasuredModel::Create(fit.tables);
    const Measurements again = Measure(Known(), DesignFor(T, 1, 128), T, noise);
    for (const PilotResult& r : again.pilots) {
      if (r.pilot.held_out || !r.pilot.trained.empty()) continue;
      const ErrorRange range = PredictPilot(model, Combine::kRms, r.pilot, 128);
      const double measured = std::sqrt(r.error.back());
      inside += measured >= range.low && measured <= range.high ? 1 : 0;
      ++all;
    }
  }
  EXPECT_GE(inside, all * 90 / 100);
}

TEST(FitTables, NothingToLearnAndWorseThanTheStart) {
  const int T = 6;
  Law law = Known();
  law.left = [](double) { return 1.0; };
  law.floor = [](int i, int j) { return 2.0 * (j - i); };  // errors above their distances
  for (const Combine combine : {Combine::kSum, Combine::kRms}) {
    const Measurements m = Measure(law, DesignFor(T), T);
    const Fit fit = *FitTables(m, combine, Options(128));
    const MeasuredModel model = *MeasuredModel::Create(fit.tables);
    const Pilot whole{{1, T}, {}, 0, false};
    const double measured = std::sqrt(FindPilot(m, whole)->error.back());
    EXPECT_NEAR(PredictPilot(model, combine, whole, 128).value, measured, 0.02 * measured);
  }
  // Starts that are right already.
  Law right = Known();
  right.distance = [](int, int, int) { return 0.0; };
  right.floor = [](int, int) { return 0.0; };
  const absl::StatusOr<Fit> fit =
      FitTables(Measure(right, DesignFor(T), T), Combine::kSum, Options(128));
  ASSERT_TRUE(fit.ok());
  EXPECT_TRUE(MeasuredModel::Create(fit->tables).ok());
}

TEST(FitTables, SaysWhatIsMissing) {
  Measurements m = Measure(Known(), DesignFor(8), 8);
  const auto without = [&m](auto&& drop) {
    Measurements less = m;
    std::erase_if(less.pilots, drop);
    return less;
  };
  EXPECT_TRUE(CanFit(without([](const PilotResult& r) { return r.pilot.held_out; })));
  const Measurements corner = without([](const PilotResult& r) {
    return r.pilot.range == Range{1, 8};
  });
  EXPECT_FALSE(CanFit(corner));
  EXPECT_TRUE(absl::IsFailedPrecondition(FitTables(corner, Combine::kSum, Options(128)).status()));
  m.gains.clear();
  EXPECT_FALSE(CanFit(m));
}

// Both rules judged on a network whose errors add in squares; what is planned is the best plan.
TEST(MakeAnswer, ChoosesTheRuleThatHoldsAndPlansByIt) {
  const int T = 8;
  const Measurements m = Measure(Known(), DesignFor(T, 1, 256, 1), T);
  AnswerQuestion q;
  q.iterations = 256;
  q.linear.schedule = CosineSchedule(T);
  q.linear.variances = m.variances;
  q.draws = 50;
  const absl::StatusOr<Answer> answer = MakeAnswer(m, q);
  ASSERT_TRUE(answer.ok()) << answer.status();
  const Judgement& j = answer->judgement;
  EXPECT_TRUE(j.chosen);
  EXPECT_EQ(j.rule, Combine::kRms);
  EXPECT_LT(j.rms.factor(), 1.05);
  EXPECT_GT(j.sum.factor(), j.rms.factor());
  EXPECT_EQ(j.held_out.size(), 7U);
  EXPECT_FALSE(j.linear_is_better());
  // The best of all plans by its own figures.
  for (const PlanRow& row : answer->rows) {
    EXPECT_GE(row.measured.value, answer->rows[0].measured.value * (1 - 1e-12)) << row.name;
  }
  EXPECT_EQ(answer->linear_plan, *CanonicalPlan(Strategy::kBoot, T));
  Heading heading;
  heading.teacher = "a \"name\" with \xff bytes";
  EXPECT_NE(AnswerText(m, *answer, heading).find("rms predicts held-out merges better"),
            std::string::npos);
  EXPECT_NE(AnswerJson(m, *answer, heading).find("\"combine\": \"rms\""), std::string::npos);
}

}  // namespace
}  // namespace mergeplan::calibrate
