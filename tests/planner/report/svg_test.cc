#include "planner/report/svg.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/planner/report/markup.h"

namespace mergeplan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST(ScaleTest, MapsEndsOntoEnds) {
  const Scale linear = Scale::Linear(-1, 3, 100, 20);
  EXPECT_DOUBLE_EQ(linear(-1), 100);
  EXPECT_DOUBLE_EQ(linear(3), 20);
  EXPECT_DOUBLE_EQ(linear(1), 60);
  const Scale log = Scale::Log(0.01, 100, 0, 4);
  EXPECT_DOUBLE_EQ(log(0.01), 0);
  EXPECT_NEAR(log(1), 2, 1e-12);
  EXPECT_NEAR(log(100), 4, 1e-12);
  EXPECT_TRUE(log.Contains(1));
  EXPECT_FALSE(log.Contains(0));
  EXPECT_FALSE(log.Contains(NAN));
}

TEST(ScaleTest, DegenerateEndsStillDraw) {
  for (const Scale& scale :
       {Scale::Linear(2, 2, 0, 1), Scale::Linear(0, 0, 0, 1), Scale::Linear(NAN, 1, 0, 1),
        Scale::Linear(5, 1, 0, 1), Scale::Log(0, 0, 0, 1), Scale::Log(1, 1, 0, 1),
        Scale::Log(INFINITY, -INFINITY, 0, 1), Scale::Log(9, 3, 0, 1)}) {
    EXPECT_LT(scale.low(), scale.high());
    EXPECT_DOUBLE_EQ(scale(scale.low()), 0);
    EXPECT_DOUBLE_EQ(scale(scale.high()), 1);
    EXPECT_THAT(scale.Ticks(5), Not(IsEmpty()));
  }
}

TEST(ScaleTest, TicksAreRoundFewAndInside) {
  std::mt19937 bits(3);
  std::uniform_real_distribution<double> exponent(-9, 9), unit(0, 1);
  for (int trial = 0; trial < 2000; ++trial) {
    const bool log = trial % 2 == 0;
    const double size = std::pow(10, exponent(bits));
    const double a = (unit(bits) - (log ? 0 : 0.5)) * size + (log ? 1e-12 : 0);
    const double b = a + unit(bits) * size;
    const int most = 2 + trial % 9;
    const Scale scale = log ? Scale::Log(a, b, 0, 1) : Scale::Linear(a, b, 0, 1);
    const std::vector<double> ticks = scale.Ticks(most);
    EXPECT_LE(ticks.size(), static_cast<size_t>(most));
    EXPECT_THAT(ticks, Not(IsEmpty())) << scale.low() << " " << scale.high();
    EXPECT_TRUE(std::is_sorted(ticks.begin(), ticks.end()));
    EXPECT_TRUE(std::adjacent_find(ticks.begin(), ticks.end()) == ticks.end());
    for (double tick : ticks) {
      EXPECT_GE(scale(tick), -1e-6);
      EXPECT_LE(scale(tick), 1 + 1e-6);
      if (tick == 0) continue;
      // At most three digits: 1, 2, 2.5, 5 times a count.
      const double power = std::pow(10, std::floor(std::log10(std::abs(tick))) - 3);
      EXPECT_NEAR(tick / power, std::round(tick / power), 1e-6) << tick;
    }
  }
}

TEST(ScaleTest, KnownTicks) {
  EXPECT_THAT(Scale::Linear(0, 32, 0, 1).Ticks(9), ElementsAre(0, 5, 10, 15, 20, 25, 30));
  EXPECT_THAT(Scale::Linear(-0.41, 0.42, 0, 1).Ticks(4), ElementsAre(-0.25, 0, 0.25));
  const std::vector<double> ticks = Scale::Log(3e-3, 50, 0, 1).Ticks(7);
  EXPECT_THAT(TickTexts(ticks, true), ElementsAre("0.01", "0.1", "1", "10"));
  EXPECT_THAT(Scale::Log(1, 1000, 0, 1).MinorTicks(), SizeIs(24));
  EXPECT_THAT(Scale::Log(1e-6, 1, 0, 1).MinorTicks(), IsEmpty());
}

TEST(TickTextTest, OneFormPerAxis) {
  EXPECT_THAT(TickTexts({-0.5, 0, 0.5}, false), ElementsAre("−0.5", "0", "0.5"));
  EXPECT_THAT(TickTexts({0, 2e-5, 4e-5}, false), ElementsAre("0", "2·10⁻⁵", "4·10⁻⁵"));
  EXPECT_THAT(TickTexts({5e-5, 1e-4}, false), ElementsAre("0.5·10⁻⁴", "10⁻⁴"));
  EXPECT_THAT(TickTexts({1e-4, 1e-2, 1}, true), ElementsAre("10⁻⁴", "10⁻²", "1"));
}

TEST(SvgCanvasTest, EscapesAndLeavesOutWhatHasNoPlace) {
  SvgCanvas canvas(100, 50, "a <b> & \"c\"", "wide");
  canvas.Text({1, 2}, "x < y & z", "tick");
  canvas.Line({0, 0}, {1, NAN}, "one");
  canvas.Circle({INFINITY, 0}, 1, "one");
  canvas.Arc(0, NAN, 1, 1, "arc");
  canvas.Text({NAN, 0}, "lost", "tick");
  const std::vector<Point> points = {{0, 0}, {NAN, 1}, {2, -0.001}};
  canvas.Polyline(points, "one");
  canvas.Dots(points, "cloud");
  for (const std::string& svg : {canvas.Inline(), canvas.Standalone(".one{fill:none}\n")}) {
    const Markup markup = ParseMarkup(svg);
    EXPECT_EQ(markup.error, "");
    EXPECT_EQ(markup.CountElements("line"), 0);
    EXPECT_EQ(markup.CountElements("circle"), 0);
    EXPECT_EQ(markup.CountElements("text"), 1);
    EXPECT_THAT(svg, HasSubstr("<title>a &lt;b&gt; &amp; &quot;c&quot;</title>"));
    EXPECT_THAT(svg, HasSubstr("points=\"0,0 2,0\""));
    EXPECT_THAT(svg, HasSubstr("d=\"M0 0h0M2 0h0\""));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

}  // namespace
}  // namespace mergeplan
