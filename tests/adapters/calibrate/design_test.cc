// What is measured where, and within which budget.
#include "adapters/calibrate/design.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "adapters/calibrate/fit.h"
#include "planner/measured/model.h"
#include "tests/adapters/calibrate/synthetic.h"

namespace mergeplan::calibrate {
namespace {

using ::testing::HasSubstr;

DesignQuestion Question(int T, int N = 1) {
  DesignQuestion q;
  q.teacher_steps = T;
  q.student_steps = N;
  q.iterations = 160;
  q.rows = 32;
  q.held_out_rows = 64;
  return q;
}

TEST(Design, HasWhatTheTablesNeedWhateverTheSteps) {
  for (int T = 2; T <= 70; ++T) {
    for (const int N : {1, 2, 3, T / 2, T - 1}) {
      if (N < 1 || N >= T) continue;
      const Design design = *MakeDesign(Question(T, N), {});
      std::set<std::pair<int, int>> trained;
      for (const Pilot& p : design.pilots) {
        ASSERT_LE(1, p.range.first);
        ASSERT_LT(p.range.first, p.range.last);
        ASSERT_LE(p.range.last, T);
        for (const Range& child : p.trained) {
          // Before the merge that is made of it.
          EXPECT_TRUE(trained.contains({child.first, child.last})) << T << " " << p.ToString();
        }
        if (p.trained.empty() && p.replicate == 0) {
          EXPECT_TRUE(trained.emplace(p.range.first, p.range.last).second) << p.ToString();
        }
      }
      EXPECT_TRUE(trained.contains({1, 2}) && trained.contains({T - 1, T}) &&
                  trained.contains({1, T}));
      EXPECT_EQ(design.checkpoints.back(), 160);
      EXPECT_EQ(design.ends.front(), 2);
      EXPECT_EQ(design.ends.back(), T);
      EXPECT_EQ(design.levels.front(), 1);
      EXPECT_EQ(design.levels.back(), T - 1);
    }
  }
}

TEST(Design, KeepsToTheBudget) {
  const Design whole = *MakeDesign(Question(16), {});
  DesignQuestion q = Question(16);
  Spend last = whole.spend;
  for (const double part : {0.9, 0.6, 0.4, 0.2, 0.1}) {
    q.limits.updates = static_cast<std::int64_t>(part * static_cast<double>(whole.spend.updates));
    const absl::StatusOr<Design> design = MakeDesign(q, {});
    ASSERT_TRUE(design.ok()) << part << " " << design.status();
    EXPECT_LE(design->spend.updates, *q.limits.updates);
    EXPECT_LT(design->spend.updates, last.updates);
    EXPECT_FALSE(design->notes.empty());
    last = design->spend;
    // What is left still fills the tables.
    std::set<std::pair<int, int>> fitted;
    for (const Pilot& p : design->pilots) {
      if (!p.held_out && p.trained.empty()) fitted.emplace(p.range.first, p.range.last);
    }
    EXPECT_TRUE(fitted.contains({1, 2}) && fitted.contains({15, 16}) && fitted.contains({1, 16}));
  }
  q.limits = {};
  q.limits.calls = whole.spend.calls / 2;
  EXPECT_LE(MakeDesign(q, {})->spend.calls, whole.spend.calls / 2);
  q.limits = {};
  q.limits.minutes = 2;
  const Speed speed{[](int steps) { return 0.01 * steps; }, 0.001};
  EXPECT_LE(MakeDesign(q, speed)->spend.seconds, 120);
}

TEST(Design, SaysWhatTheLeastTakes) {
  DesignQuestion q = Question(16);
  q.limits.updates = 20;
  const absl::Status status = MakeDesign(q, {}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the least that fills the model takes"));
  for (const auto& [T, N] : {std::pair{1, 1}, {4, 4}, {4, 9}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(MakeDesign(Question(T, N), {}).status())) << T;
  }
}

TEST(Design, ReadsBudgets) {
  const SpendLimits limits = *SpendLimits::Parse("minutes=1.5,updates=2e3,calls=7");
  EXPECT_EQ(limits.updates, 2000);
  EXPECT_EQ(limits.calls, 7);
  EXPECT_EQ(limits.minutes, 1.5);
  for (const char* bad : {"", "updates", "updates=", "updates=0", "updates=-1", "updates=nan",
                          "calls=1,calls=2", "hours=1", "minutes=inf", "updates=1,,calls=2"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(SpendLimits::Parse(bad).status())) << bad;
  }
}

TEST(StartDepths, HaveTheirCorners) {
  EXPECT_THAT(StartDepths(2, 8), ::testing::ElementsAre(0));
  EXPECT_THAT(StartDepths(5, 8), ::testing::ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(StartDepths(12, 64), ::testing::ElementsAre(0, 1, 2, 4, 8, 10));
}

}  // namespace
}  // namespace mergeplan::calibrate
