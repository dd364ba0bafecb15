#include "planner/report/charts.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/planner/report/example.h"
#include "tests/planner/report/markup.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Markup Checked(const std::string& svg) {
  Markup markup = ParseMarkup(svg);
  EXPECT_EQ(markup.error, "");
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf\"")));
  return markup;
}

TEST(SpectrumChartTest, LinesAndBandsForManyDimensionsDotsForFew) {
  const Example many({.shape = {8, 8}});
  Markup markup = Checked(SpectrumChart(many.spectrum, 1));
  EXPECT_EQ(markup.CountElements("polyline"), 2);
  EXPECT_EQ(markup.CountClass("band-one"), 1);
  EXPECT_EQ(markup.CountClass("band-two"), 1);
  EXPECT_EQ(markup.CountClass("rule"), 1);
  const Example few({.shape = {3, 2}});
  markup = Checked(SpectrumChart(few.spectrum, 1));
  EXPECT_EQ(markup.CountElements("circle"), 12);
  const Example one({.shape = {1}});
  EXPECT_EQ(Checked(SpectrumChart(one.spectrum, 1)).CountElements("circle"), 2);
}

TEST(SpectrumChartTest, ZeroAndNonFiniteVariancesAreLeftOut) {
  Example example({.shape = {3, 2}});
  example.spectrum.diagonal.variances[2] = 0;
  example.spectrum.diagonal.variances_low[2] = 0;
  example.spectrum.diagonal.variances_high[2] = 0;
  example.spectrum.diagonal.variances_low[1] = -1;
  example.spectrum.pca.variances[5] = NAN;
  EXPECT_EQ(PositiveVariances(example.spectrum.diagonal), 5);
  EXPECT_EQ(PositiveVariances(example.spectrum.pca), 5);
  EXPECT_EQ(Checked(SpectrumChart(example.spectrum, 1)).CountElements("circle"), 10);
  for (Basis* basis : {&example.spectrum.diagonal, &example.spectrum.pca}) {
    basis->variances.assign(6, 0.0);
    basis->variances_low.clear();
    basis->variances_high.clear();
  }
  EXPECT_EQ(Checked(SpectrumChart(example.spectrum, 1)).CountElements("circle"), 0);
}

TEST(ErrorChartTest, OneRowPerStrategyWhateverTheFigures) {
  Example example({.teacher_steps = 8});
  Markup markup = Checked(ErrorChart(example.input.strategies));
  EXPECT_EQ(markup.CountClass("ring"), 5);
  EXPECT_EQ(markup.CountClass("achieved"), 5);
  EXPECT_EQ(markup.CountClass("spread"), 5);
  example.input.strategies[0].achieved_objective = NAN;
  example.input.strategies[1].achieved_objective = 0;
  example.input.strategies[2].spread.reset();
  example.input.strategies[3].spread = INFINITY;
  example.input.strategies[4].spread = 1e9;
  example.input.strategies[4].name = "<&>";
  const std::string svg = ErrorChart(example.input.strategies);
  markup = Checked(svg);
  EXPECT_EQ(markup.CountClass("achieved"), 4);
  EXPECT_EQ(markup.CountClass("spread"), 3);
  EXPECT_THAT(svg, HasSubstr("&lt;&amp;&gt;"));
  for (StrategyResult& s : example.input.strategies) {
    s.predicted_objective = s.predicted_with_noise = s.achieved_objective = 0;
  }
  EXPECT_EQ(Checked(ErrorChart(example.input.strategies)).CountClass("ring"), 5);
}

TEST(ErrorScatterTest, ADotPerDimension) {
  const Example few({.shape = {4, 4}, .teacher_steps = 8});
  Markup markup = Checked(ErrorScatter(few.input.strategies[0], few.plan.tau));
  EXPECT_EQ(markup.CountClass("point"), 16);
  EXPECT_EQ(markup.CountClass("equal"), 1);
  StrategyResult many = few.input.strategies[0];
  const std::vector<double> tau(5000, 0.5);
  many.value.clear();
  many.expected_value.clear();
  for (int k = 0; k < 5000; ++k) {
    many.value.push_back(0.5 + 1e-3 * k);
    many.expected_value.push_back(0.5 + 1e-3 * k);
  }
  many.value[7] = NAN;
  markup = Checked(ErrorScatter(many, tau));
  int dots = 0;
  for (const MarkupElement& element : markup.elements) {
    if (element.name != "path") continue;
    for (const char c : element.attributes.at("d")) dots += c == 'M';
  }
  EXPECT_EQ(dots, 4000);
}

TEST(VectorChartTest, ALinePerVector) {
  const std::string svg = VectorChart("lines", {{1, 2, NAN, 3}, {0, 0, 0, 0}}, 0, 3);
  EXPECT_EQ(Checked(svg).CountElements("polyline"), 2);
  EXPECT_EQ(Checked(VectorChart("none", {}, INFINITY, -INFINITY)).CountElements("polyline"), 0);
}

TEST(ColourBarTest, LabelsBothSigns) {
  const std::string svg = ColourBar(0.47);
  Checked(svg);
  EXPECT_THAT(svg, HasSubstr(">−0.4<"));
  EXPECT_THAT(svg, HasSubstr(">0.4<"));
  Checked(ColourBar(0));
}

TEST(LegendTest, EveryMarkHasItsShape) {
  EXPECT_EQ(Checked(LegendKey("ring")).CountElements("circle"), 1);
  EXPECT_EQ(Checked(LegendKey("achieved")).CountElements("polygon"), 1);
  EXPECT_EQ(Checked(LegendKey("one")).CountElements("line"), 1);
}

}  // namespace
}  // namespace mergeplan
