#include "planner/report/arcs.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "planner/operators/canonical.h"
#include "planner/report/style.h"
#include "planner/report/text.h"
#include "tests/planner/report/example.h"
#include "tests/planner/report/markup.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<Plan> Plans() {
  std::vector<Plan> plans;
  for (const int steps : {1, 2, 3, 8, 32, 129, 1000}) {
    for (const int blocks : {1, 2, 4}) {
      if (blocks > steps) continue;
      for (Strategy strategy : kStrategies)
        plans.push_back(*CanonicalPlan(strategy, steps, blocks));
      plans.push_back(HybridPlan(steps, blocks));
    }
  }
  return plans;
}

TEST(ArcPlotSvgTest, OneArcPerMergeInEveryForm) {
  for (const Plan& plan : Plans()) {
    for (const bool small : {false, true}) {
      for (const bool standalone : {false, true}) {
        const std::string svg =
            ArcPlotSvg(plan, {.title = "", .standalone = standalone, .small = small});
        const Markup markup = ParseMarkup(svg);
        ASSERT_EQ(markup.error, "");
        EXPECT_EQ(markup.CountClass("arc"), plan.size()) << DescribePlan(plan);
        EXPECT_EQ(markup.CountElements("svg"), 1);
        EXPECT_THAT(svg, Not(HasSubstr("nan")));
        EXPECT_EQ(svg.find("xmlns=") != std::string::npos, standalone);
      }
    }
  }
}

TEST(ArcPlotSvgTest, ChildrenOfWideMergesAndBordersOfBlocksAreMarked) {
  EXPECT_EQ(ParseMarkup(ArcPlotSvg(*CanonicalPlan(Strategy::kVanilla, 8))).CountClass("child"), 7);
  EXPECT_EQ(ParseMarkup(ArcPlotSvg(*CanonicalPlan(Strategy::kBoot, 8))).CountClass("child"), 0);
  // No room: no dots at all, instead of some of them.
  EXPECT_EQ(ParseMarkup(ArcPlotSvg(*CanonicalPlan(Strategy::kVanilla, 1000))).CountClass("child"),
            0);
  EXPECT_EQ(ParseMarkup(ArcPlotSvg(*CanonicalPlan(Strategy::kVanilla, 8, 4))).CountClass("block"),
            3);
  EXPECT_EQ(ParseMarkup(ArcPlotSvg(*CanonicalPlan(Strategy::kVanilla, 8))).CountClass("block"), 0);
}

TEST(ArcPlotSvgTest, ArcsNameTheirMergeAndGetDarkerByRound) {
  const std::string svg = ArcPlotSvg(*CanonicalPlan(Strategy::kBoot, 4));
  EXPECT_THAT(svg, HasSubstr("class=\"arc a0\"><title>merge of steps 3–4 in round 1: 3, 4<"));
  EXPECT_THAT(svg, HasSubstr("class=\"arc a15\"><title>merge of steps 1–4 in round 3: 1, 2–4<"));
  EXPECT_EQ(RoundClass(1, 1), "a15");
  EXPECT_EQ(RoundClass(1, 31), "a0");
  EXPECT_EQ(RoundClass(31, 31), "a15");
  // Every shade is darker than the one before.
  const auto light = [](int shade) {
    const std::string hex = RoundColour(shade);
    int sum = 0;
    for (int k : {1, 3, 5}) sum += std::stoi(hex.substr(k, 2), nullptr, 16);
    return sum;
  };
  for (int k = 1; k < kRoundShades; ++k) EXPECT_LT(light(k), light(k - 1)) << k;
}

TEST(ArcPlotTextTest, DrawsASmallPlan) {
  EXPECT_EQ(ArcPlotText(*CanonicalPlan(Strategy::kProgressive, 4), 40),
            "round\n"
            "    2 ╭───────────────────────────────╮\n"
            "    1 ├───────────────┬───────────────┤\n"
            "level ╰───────────────┴───────────────╯\n"
            "      0       1       2       3       4\n"
            "\n"
            "Level 0 is clean, the last is noise. 4\n"
            "teacher steps into 1 student step: 3\n"
            "merges in 2 rounds, two parts at a time;\n"
            "the same plan as progressive.\n");
  EXPECT_EQ(ArcPlotText(*CanonicalPlan(Strategy::kVanilla, 3), 30, {.ascii = true}),
            "round\n"
            "    1 +------+------+------+\n"
            "level +--------------------+\n"
            "      0      1      2      3\n"
            "\n"
            "Level 0 is clean, the last is\n"
            "noise. 3 teacher steps into 1\n"
            "student step: 1 merge in 1\n"
            "round, up to 3 parts at once;\n"
            "the same plan as vanilla.\n");
}

TEST(ArcPlotTextTest, NeverWiderThanAskedAndNeverTallerThanItsCap) {
  for (const Plan& plan : Plans()) {
    for (const int columns : {24, 40, 80, 200}) {
      for (const bool ascii : {false, true}) {
        const std::string text = ArcPlotText(plan, columns, {.ascii = ascii, .max_rows = 12});
        const std::vector<std::string> lines = absl::StrSplit(text, '\n');
        const int rows =
            static_cast<int>(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
              return line.rfind("  ", 0) == 0;
            }));
        EXPECT_LE(rows, 12 + 1);  // the rows and the numbers of the levels
        for (const std::string& line : lines) EXPECT_LE(CodePoints(line), columns) << line;
        if (!ascii) continue;
        for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= ' ' && c < 127));
      }
    }
  }
}

TEST(ArcPlotTextTest, SaysWhatIsNotDrawn) {
  const std::string boot = ArcPlotText(*CanonicalPlan(Strategy::kBoot, 1000), 80);
  EXPECT_THAT(boot, HasSubstr("The 999 rounds share 20 rows"));
  const std::string progressive = ArcPlotText(*CanonicalPlan(Strategy::kProgressive, 1000), 80);
  EXPECT_THAT(progressive, HasSubstr("shorter than a column are not drawn"));
  EXPECT_THAT(ArcPlotText(*CanonicalPlan(Strategy::kBoot, 8), 80), Not(HasSubstr("share")));
}

TEST(DescribePlanTest, CountsAndNamesCanonicalPlans) {
  EXPECT_EQ(
      DescribePlan(*CanonicalPlan(Strategy::kBoot, 32)),
      "32 teacher steps into 1 student step: 31 merges in 31 rounds, two parts at a time; the "
      "same plan as boot.");
  EXPECT_EQ(
      DescribePlan(*CanonicalPlan(Strategy::kVanilla, 32, 4)),
      "32 teacher steps into 4 student steps: 4 merges in 1 round, up to 8 parts at once; the "
      "same plan as vanilla.");
  EXPECT_EQ(
      DescribePlan(HybridPlan(32, 1)),
      "32 teacher steps into 1 student step: 17 merges in 17 rounds, up to 16 parts at once.");
  EXPECT_EQ(DescribePlan(*CanonicalPlan(Strategy::kBoot, 1)),
            "1 teacher step into 1 student step: nothing is merged.");
}

}  // namespace
}  // namespace mergeplan
