#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "planner/measured/model.h"
#include "tests/planner/measured/cases.h"

namespace mergeplan {
namespace {

MeasuredEntry At(int first, int last, double value) {
  return {first, last, 0, 0, value, value, value};
}
MeasuredEntry From(int first, int start, int last, double value) {
  return {first, last, start, 0, value, value, value};
}
MeasuredEntry After(int first, int last, std::int64_t updates, double value) {
  return {first, last, 0, updates, value, value, value};
}

// T = 9 with a few spans and places.
MeasuredTables Sparse() {
  MeasuredTables t;
  t.teacher_steps = 9;
  t.gain = {At(1, 1, 1), At(8, 8, 2), At(1, 8, 4)};
  t.floor = {At(1, 2, 1), At(8, 9, 3), At(1, 5, 10), At(3, 7, 40), At(5, 9, 20), At(1, 9, 100)};
  t.distance = {At(1, 2, 1), At(8, 9, 1), From(1, 9, 9, 16), From(1, 5, 9, 8), From(1, 2, 9, 1)};
  t.residual = {After(1, 2, 10, 0.5), After(1, 2, 30, 0.1), After(8, 9, 20, 0.4),
                After(1, 9, 10, 0.8)};
  return t;
}

MeasuredModel Make(const MeasuredTables& tables) {
  absl::StatusOr<MeasuredModel> model = MeasuredModel::Create(tables);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

TEST(Interpolation, ByHand) {
  const MeasuredModel m = Make(Sparse());
  const auto& x = m.values();
  EXPECT_EQ(m.Gain(3, 2).At(x), 1);  // nothing to pass through
  // Spans 1 and 8 of 1..8. Span 1 at place 4/7 of 1..8 (first = 5): 1 + 4/7.
  EXPECT_DOUBLE_EQ(m.Gain(5, 5).At(x), 1 + 4.0 / 7);
  // Span 4 is 3/7 of the way from 1 to 8; first = 3 of 1..5 is half-way: 1.5 there.
  EXPECT_DOUBLE_EQ(m.Gain(3, 6).At(x), 1.5 * 4 / 7 + 4.0 * 3 / 7);
  // A measured span between its places: [2, 6] half-way between [1, 5] and [3, 7].
  EXPECT_DOUBLE_EQ(m.Floor(2, 6).At(x), 25);
  // Span 7 is half-way between 5 and 9; first = 2 of 1..3 is [3, 7] among the ranges of 5.
  EXPECT_DOUBLE_EQ(m.Floor(2, 8).At(x), 0.5 * 40 + 0.5 * 100);
  // The noisiest child of [1, 9] covers 1..8 steps: measured at 1, 5 and 8.
  EXPECT_DOUBLE_EQ(m.Distance(1, 7, 9).At(x), 12);
  EXPECT_DOUBLE_EQ(m.Distance(1, 3, 9).At(x), 8 - 7 * 2.0 / 3);
  // Ranges of 2 steps have one start, 1; span 3 is 1/7 of the way to 9. Its starts are the ends.
  EXPECT_DOUBLE_EQ(m.Distance(4, 6, 6).At(x), 1 * 6.0 / 7 + 16 / 7.0);
  EXPECT_DOUBLE_EQ(m.Distance(4, 5, 6).At(x), 1 * 6.0 / 7 + 1 / 7.0);
  // Residuals: 1 at 0 updates, linear, constant after the last.
  EXPECT_DOUBLE_EQ(m.Residual(1, 2, 5).At(x), 0.75);
  EXPECT_DOUBLE_EQ(m.Residual(1, 2, 20).At(x), 0.3);
  EXPECT_DOUBLE_EQ(m.Residual(1, 2, 1000).At(x), 0.1);
  EXPECT_DOUBLE_EQ(m.Residual(8, 9, 10).At(x), 0.7);
  EXPECT_TRUE(m.start_matters());
}

TEST(Interpolation, MeasuredNumbersAreKeptExactly) {
  std::mt19937_64 random(1);
  for (int n = 0; n < 100; ++n) {
    CaseKind kind;
    kind.steps = Pick(random, 2, 12);
    kind.start_matters = n % 2 == 0;
    const RandomCase c = MakeCase(kind, random);
    const MeasuredModel m = Make(c.Tables());
    for (const auto& [key, v] : c.gain) {
      EXPECT_EQ(m.Gain(key.first, key.second).At(m.values()), v);
    }
    for (const auto& [key, v] : c.floor) {
      EXPECT_EQ(m.Floor(key.first, key.second).At(m.values()), v);
    }
    for (const auto& [key, v] : c.distance) {
      const auto& [i, a, j] = key;
      EXPECT_EQ(m.Distance(i, a, j).At(m.values()), v);
      std::vector<double> row(j - i);
      m.Distances(i, j, m.values(), absl::MakeSpan(row));
      EXPECT_EQ(row[a - i - 1], v);
    }
    for (const auto& [key, v] : c.residual) {
      const auto& [i, j, u] = key;
      EXPECT_EQ(m.Residual(i, j, u).At(m.values()), v);
      EXPECT_EQ(m.ResidualCurve(i, j, m.values()).At(u), v);
    }
  }
}

// Every number lies between measured ones, rises with them, and comes out the same by every way to
// ask for it.
TEST(Interpolation, StaysWithinWhatWasMeasured) {
  const MeasuredModel m = Make(Sparse());
  const auto check = [](const Form& form, int first, int last) {
    double sum = form.constant;
    for (const auto& [entry, weight] : form.terms) {
      EXPECT_GT(weight, 0);
      sum += weight;
    }
    EXPECT_NEAR(sum, 1, 1e-15) << first << " " << last;
  };
  for (int i = 1; i <= 9; ++i) {
    for (int j = i + 1; j <= 9; ++j) {
      check(m.Gain(i, j - 1), i, j - 1);
      check(m.Floor(i, j), i, j);
      std::vector<double> row(j - i);
      m.Distances(i, j, m.values(), absl::MakeSpan(row));
      for (int a = i + 1; a <= j; ++a) {
        check(m.Distance(i, a, j), i, j);
        EXPECT_NEAR(row[a - i - 1], m.Distance(i, a, j).At(m.values()), 1e-14);
      }
      const Curve curve = m.ResidualCurve(i, j, m.values());
      double before = 1;
      for (std::int64_t u = 0; u <= 40; ++u) {
        check(m.Residual(i, j, u), i, j);
        const double left = m.Residual(i, j, u).At(m.values());
        EXPECT_NEAR(curve.At(u), left, 1e-15);
        EXPECT_LE(left, before + 1e-15);
        before = left;
      }
    }
  }
}

TEST(Interpolation, ConvexityIsThatOfTheMeasuredCurves) {
  MeasuredTables t = Sparse();
  EXPECT_TRUE(Make(t).convex());  // 1, 0.5 at 10, 0.1 at 30
  t.residual[1].value = t.residual[1].low = t.residual[1].high = 0;
  t.residual[1].updates = 11;  // falls faster later
  EXPECT_FALSE(Make(t).convex());
  t = Sparse();
  t.residual = {After(1, 2, 1, 0.9), After(1, 2, 2, 0.1), After(1, 2, 3, 0.05), After(8, 9, 1, 1),
                After(1, 9, 1, 1)};
  EXPECT_TRUE(Make(t).convex());  // what lies between 0 and 1 update does not count
}

TEST(Draws, StayWithinTheIntervalsAndFallWithTheUpdates) {
  MeasuredTables t = Sparse();
  for (auto* entries : {&t.gain, &t.distance, &t.floor}) {
    for (MeasuredEntry& e : *entries) {
      e.low = 0.5 * e.value;
      e.high = 1.25 * e.value;
    }
  }
  for (MeasuredEntry& e : t.residual) {
    e.low = 0.9 * e.value;
    e.high = e.value + 0.1 * (1 - e.value);
  }
  const MeasuredModel m = Make(t);
  std::mt19937_64 random(7), again(7);
  std::vector<double> draw, same;
  std::vector<int> below(m.values().size());
  constexpr int kDraws = 4000;
  for (int n = 0; n < kDraws; ++n) {
    m.Draw(random, draw);
    m.Draw(again, same);
    ASSERT_EQ(draw, same);
    for (size_t k = 0; k < draw.size(); ++k) {
      ASSERT_GE(draw[k], m.lows()[k]);
      ASSERT_LE(draw[k], m.highs()[k]);
      below[k] += draw[k] < m.values()[k] ? 1 : 0;
    }
    ASSERT_GE(m.Residual(1, 2, 10).At(draw), m.Residual(1, 2, 30).At(draw));
  }
  // 6 standard deviations of a fair coin.
  for (const int count : below) EXPECT_NEAR(count, kDraws / 2, 6 * std::sqrt(kDraws / 4.0));
}

}  // namespace
}  // namespace mergeplan
