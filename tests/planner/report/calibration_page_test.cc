// The page of a calibration.
#include "planner/report/calibration_page.h"

#include <gmock/gmock.h>

#include <string>

#include "planner/report/calibration_charts.h"
#include "tests/planner/report/calibration_example.h"
#include "tests/planner/report/markup.h"
#include "tests/planner/report/page.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Stricter than every page must be: there are no pictures, and no number that is none.
std::string Page(const CalibrationPage& input, Markup* markup = nullptr) {
  Markup parsed;
  std::string html = CheckedPage(RenderCalibration(input), &parsed);
  for (const MarkupElement& element : parsed.elements) {
    EXPECT_NE(element.name, "script");
    EXPECT_EQ(element.attributes.count("src"), 0u);
    for (const auto& [name, value] : element.attributes) {
      EXPECT_THAT(value, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf")))) << name;
    }
  }
  EXPECT_THAT(html, Not(HasSubstr("NaN")));
  // Every row of a table has a cell for every heading.
  std::size_t columns = 0, cells = 0;
  for (const MarkupElement& element : parsed.elements) {
    const bool heading = element.name == "th" && element.attributes.count("scope") != 0 &&
                         element.attributes.at("scope") == "col";
    if (element.name == "table") columns = cells = 0;
    if (element.name == "tr" && cells != 0) {
      EXPECT_EQ(cells, columns) << element.text;
      cells = 0;
    }
    if (heading) ++columns;
    if (!heading && (element.name == "th" || element.name == "td")) ++cells;
  }
  if (markup != nullptr) *markup = std::move(parsed);
  return html;
}

TEST(CalibrationPageTest, SaysWhatWasMeasuredJudgedAndPlanned) {
  const CalibrationPage input = MakeCalibration();
  Markup markup;
  const std::string html = Page(input, &markup);
  EXPECT_EQ(Page(input), html);
  const std::string text = Plain(html);
  for (const char* sentence :
       {"Of 5 merges that no fit has seen the measured model’s predictions are typically off by a "
        "factor of 1.17, the linear model’s by 1.73.",
        "its plan is better than the linear model’s by a factor of 1.24, in 93 % of draws",
        "with 2 merges in place of 7", "From one seed to the next they differ by 6 %.",
        "4 of 5 held-out merges lie inside",
        "Its rule “rms” is off by a factor of 1.17, “sum” by "
        "1.41",
        "unet:models/&lt;small&gt;", "plan &lt;1&gt;.toml", "the root of the sum"}) {
    EXPECT_THAT(text, HasSubstr(sentence));
  }
  // A chart for every merge: five with two seeds, one over a merge, five that judge; four tables,
  // one of judged merges, two plans.
  EXPECT_EQ(markup.CountClass("small"), 11 + 4 + 1 + 2);
  int rings = 0, held_out = 0;
  for (const MarkupElement& element : markup.elements) {
    rings +=
        element.attributes.count("class") != 0 && element.attributes.at("class") == "ring" ? 1 : 0;
    held_out +=
        element.name == "h3" && element.text.find("(held out)") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(rings, 5 + 1);  // and one in the legend
  EXPECT_EQ(held_out, 5);
  // Every number of the tables stands in it.
  const auto& t = input.tables;
  int rows = 0;
  for (const MarkupElement& element : markup.elements) rows += element.name == "tr" ? 1 : 0;
  EXPECT_GE(rows, static_cast<int>(t.gain.size() + t.distance.size() + t.residual.size() +
                                   t.floor.size()));
}

TEST(CalibrationPageTest, WarnsWhereItShould) {
  const auto text = [](const CalibrationPage& page) { return Plain(Page(page)); };
  CalibrationPage page = MakeCalibration();
  EXPECT_THAT(text(page), AllOf(Not(HasSubstr("Trust neither")), Not(HasSubstr("poor fit")),
                                Not(HasSubstr("too narrow")), Not(HasSubstr("stopped before")),
                                Not(HasSubstr("a bench must decide"))));
  page.linear_factor = 1.1;
  EXPECT_THAT(text(page), HasSubstr("The linear model predicts better here"));
  page = MakeCalibration();
  page.factor = 1.6;
  EXPECT_THAT(text(page), AllOf(HasSubstr("poor fit"), HasSubstr("a bench must decide")));
  page = MakeCalibration();
  page.within = 2;
  EXPECT_THAT(text(page), HasSubstr("too narrow"));
  page = MakeCalibration();
  page.judged_merges = 0;
  page.judged.clear();
  page.complete = false;
  page.failure = "merge <x>";
  page.spread_of_seeds = false;
  EXPECT_THAT(text(page), AllOf(HasSubstr("No merge was held out"), HasSubstr("was stopped"),
                                HasSubstr("A pilot failed: merge &lt;x&gt;"),
                                HasSubstr("seeds were not repeated")));
  page = MakeCalibration();
  page.plans[1].plan = page.plans[0].plan;
  EXPECT_THAT(
      text(page),
      HasSubstr("Both models plan the same: 8 teacher steps into 1 student step: 2 merges"));
}

TEST(CalibrationPageTest, DrawsOddNumbersAndRefusesWhatDoesNotFit) {
  CalibrationPage page = MakeCalibration();
  // An error of 0, intervals from 0 on, a single entry, all of one size.
  page.pilots[0].error[0] = 0;
  page.pilots[0].fitted[1].low = 0;
  page.judged[0].predicted = {0, 0, 0};
  page.judged[1].measured = 0;
  page.tables.floor = {page.tables.floor.front()};
  page.tables.floor[0].value = page.tables.floor[0].low = page.tables.floor[0].high = 0;
  Page(page);

  page = MakeCalibration();
  page.plans.pop_back(), page.plans.pop_back();
  EXPECT_FALSE(RenderCalibration(page).ok());
  page = MakeCalibration();
  page.tables.teacher_steps = 7;
  EXPECT_THAT(std::string(RenderCalibration(page).status().message()),
              HasSubstr("measured plan: is a plan of 8 teacher steps"));
  page = MakeCalibration();
  page.pilots[3].fitted.pop_back();
  EXPECT_THAT(std::string(RenderCalibration(page).status().message()),
              HasSubstr("the pilot [7, 8] has curves of different lengths"));
}

TEST(CalibrationPageTest, TablesShowTheLastUpdates) {
  const std::vector<MeasuredEntry> shown = ShownEntries(MakeCalibration().tables.residual);
  EXPECT_EQ(shown.size(), 28u);
  for (const MeasuredEntry& entry : shown) EXPECT_EQ(entry.updates, 150);
}

}  // namespace
}  // namespace mergeplan
