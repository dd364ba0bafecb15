#include "planner/report/report.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>

#include "absl/strings/escaping.h"
#include "planner/report/text.h"
#include "tests/planner/report/example.h"
#include "tests/planner/report/markup.h"
#include "tests/planner/report/page.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Page(const ReportInput& input, Markup* markup = nullptr) {
  return CheckedPage(RenderHtml(input), markup);
}

TEST(ReportTest, TheCheckOfThePageSeesNonNumbers) {
  EXPECT_TRUE(HoldsNonNumber("x1=\"-nan\""));
  EXPECT_TRUE(HoldsNonNumber("Inf"));
  EXPECT_FALSE(HoldsNonNumber("information on nanometres"));
}

TEST(ReportTest, HoldsEverySectionInOrder) {
  const Example example({});
  Markup markup;
  const std::string html = Page(example.input, &markup);
  std::vector<std::string> headings;
  for (const MarkupElement& element : markup.elements) {
    if (element.name == "h2") headings.push_back(element.text);
  }
  EXPECT_THAT(headings,
              ::testing::ElementsAre("Variances of the data", "Covariance", "Merge schedules",
                                     "Predicted and achieved", "Samples", "Assumptions",
                                     "Certificate", "Where this comes from"));
  // The plan and five strategies; a heatmap and seven rows of samples with six of differences.
  int merges = example.plan.plan.size();
  for (const StrategyResult& s : example.input.strategies) merges += s.document.plan.size();
  EXPECT_EQ(markup.CountClass("arc"), merges);
  EXPECT_EQ(markup.CountElements("img"), 1 + 7 + 6);
  EXPECT_EQ(markup.CountClass("cloud") + markup.CountClass("point"), 5 * 64);
  EXPECT_THAT(html, HasSubstr("mergeplan analyze"));
  EXPECT_THAT(html, HasSubstr("out/runs/boot"));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_EQ(html, *RenderHtml(example.input));
}

TEST(ReportTest, ManyShapesAndSizes) {
  for (const ExampleOptions& options :
       {ExampleOptions{.shape = {1}, .teacher_steps = 8},
        ExampleOptions{.shape = {2}, .teacher_steps = 2},
        ExampleOptions{.shape = {1}, .teacher_steps = 1},
        ExampleOptions{.shape = {40}, .teacher_steps = 32, .scaling = "none"},
        ExampleOptions{.shape = {3, 5, 4}, .student_steps = 4, .data_scale = 0.5},
        ExampleOptions{.shape = {4, 4}, .teacher_steps = 1000},
        ExampleOptions{.shape = {5, 5}, .strategies = {"boot"}, .basis = "diagonal"},
        ExampleOptions{.reference = Reference::kData},
        ExampleOptions{.reference = Reference::kTeacher}}) {
    const Example example(options);
    Markup markup;
    Page(example.input, &markup);
    int merges = example.plan.plan.size();
    for (const StrategyResult& s : example.input.strategies) merges += s.document.plan.size();
    EXPECT_EQ(markup.CountClass("arc"), merges);
  }
}

TEST(ReportTest, TheVerdictNamesTheBestAndBothBudgets) {
  Example example({});
  auto& runs = example.input.strategies;
  for (size_t k = 0; k < runs.size(); ++k) {
    runs[k].achieved_objective = 1.0 + static_cast<double>(k);
    runs[k].predicted_objective = 5.0 + static_cast<double>(k);
    runs[k].spread = 0.01;
    runs[k].equal_total_time = 10.0 - static_cast<double>(k);
  }
  example.plan.strategies.clear();
  example.plan.status = "";
  std::string text = Plain(Page(example.input));
  EXPECT_THAT(text,
              HasSubstr("Of 5 runs with the same time per merge, vanilla came closest to the "
                        "surrogate: 1.000 achieved, 5.000 predicted; next is progressive with "
                        "2.000, 2.0 times as much."));
  EXPECT_THAT(text, HasSubstr("The model expects vanilla to be best, with 5.000."));
  EXPECT_THAT(text,
              HasSubstr("the order changes. If every strategy may spend the time of 15 merges, "
                        "what BOOT spends, the model expects dp_custom to be best, with "
                        "6.000."));
  EXPECT_THAT(text, Not(HasSubstr("other seeds")));

  runs[0].spread = 2;
  EXPECT_THAT(Plain(Page(example.input)),
              HasSubstr("other seeds may put them the other way round"));
  runs[3].document.budget.iterations += 1;
  text = Plain(Page(example.input));
  EXPECT_THAT(text, HasSubstr("each with its own budget"));
  EXPECT_THAT(text, HasSubstr("consistency differs"));
  runs[2].law_test->adjusted_p = 1e-5;
  EXPECT_THAT(Plain(Page(example.input)),
              HasSubstr("does not agree with the predicted law for boot"));
}

TEST(ReportTest, FiguresAtEqualTotalTimeComeFromThePlan) {
  Example example({});
  const std::string html = Page(example.input);
  for (const StrategyFigures& figures : example.plan.strategies) {
    EXPECT_THAT(html, HasSubstr(NumberHtml(*figures.objective_equal_total_time)));
  }
  EXPECT_THAT(html, HasSubstr(NumberHtml(*example.plan.objective_equal_total_time)));
}

TEST(ReportTest, WithoutRunsOrSpectrumOrPlan) {
  Example example({.strategies = {}});
  Markup markup;
  std::string text = Plain(Page(example.input, &markup));
  EXPECT_THAT(text, HasSubstr("Nothing has been trained yet."));
  EXPECT_EQ(markup.CountElements("img"), 1 + 2 + 1);
  // Thumbnails of the four canonical plans.
  EXPECT_EQ(markup.CountClass("arc"), example.plan.plan.size() + 1 + 15 + 15 + 15);
  example.input.plan = nullptr;
  EXPECT_THAT(Plain(Page(example.input)), HasSubstr("no plan has been made yet"));
  example.input.spectrum = nullptr;
  EXPECT_FALSE(RenderHtml(example.input).ok());

  Example runs({.strategies = {"boot", "vanilla"}});
  runs.input.plan = nullptr;
  runs.input.spectrum = nullptr;
  text = Plain(Page(runs.input, &markup));
  EXPECT_EQ(markup.CountClass("arc"), 16);
  EXPECT_THAT(text, HasSubstr("No spectrum was given"));
  for (StrategyResult& s : runs.input.strategies) {
    s.value.clear();
    s.expected_value.clear();
    s.value_spread.clear();
    s.merges.clear();
    s.law_test.reset();
    s.spread.reset();
  }
  Page(runs.input);
}

TEST(ReportTest, BandsTooThinToSeeAreSaid) {
  Example example({.shape = {4, 4}});
  EXPECT_THAT(Plain(Page(example.input)), HasSubstr("95 % confidence intervals, ±7.2 %\n"));
  example.spectrum.pca.interval = "fourth-moment";
  example.spectrum.diagonal.variances_high[3] = 3 * example.spectrum.diagonal.variances[3];
  EXPECT_THAT(
      Plain(Page(example.input)),
      HasSubstr("intervals from fourth moments, ±7.2 % at the median, ±200 % at the widest"));
}

TEST(ReportTest, SpectrumWithoutPrincipalAxes) {
  Example example({.shape = {4, 4}, .strategies = {"boot"}, .basis = "diagonal"});
  example.spectrum.vectors.clear();
  example.spectrum.pca = Basis();
  example.spectrum.recommended_basis = "diagonal";
  Markup markup;
  std::string text = Plain(Page(example.input, &markup));
  EXPECT_THAT(text, HasSubstr("The principal axes were not computed."));
  EXPECT_EQ(markup.CountElements("img"), 1 + 3 + 2);
  example.plan.basis = "pca";
  EXPECT_THAT(Plain(Page(example.input)), HasSubstr("the spectrum does not hold"));
  example.input.plan = nullptr;
  example.input.strategies.clear();
  EXPECT_THAT(Plain(Page(example.input)), HasSubstr("have a variance above one as stored"));
}

TEST(ReportTest, EverythingIsEscaped) {
  const std::string evil = "<b>\"x\" & 'y' größe\x01\xFF</b>";
  Example example({.strategies = {"boot", "dp_custom"}});
  ReportInput& input = example.input;
  input.title = evil;
  input.spectrum_path = input.plan_path = evil;
  input.commands = {evil};
  input.notes = {evil};
  for (StrategyResult& s : input.strategies) {
    s.name = s.run_folder = evil;
    s.document.plan = example.plan.plan;
  }
  example.plan.schedule_spec = example.plan.guarantee = example.plan.status = evil;
  example.plan.strategies[0].name = evil;
  example.spectrum.source = example.spectrum.scaling.text = evil;
  example.spectrum.recommended_basis = example.spectrum.recommended_basis_reason = evil;
  const std::string html = Page(input);
  EXPECT_THAT(html,
              HasSubstr("<h1>&lt;b&gt;&quot;x&quot; &amp; &#39;y&#39; größe\xEF\xBF\xBD\xEF\xBF"
                        "\xBD&lt;/b&gt;</h1>"));
  EXPECT_THAT(html, Not(HasSubstr("<b>\"")));
  example.plan.basis = evil;
  Page(input);
}

// Samples of networks come as pictures that lie in the runs' folders.
TEST(ReportTest, PicturesOfRunsStandInThePage) {
  Example example({.strategies = {"vanilla", "boot"}});
  for (StrategyResult& strategy : example.input.strategies) {
    strategy.linear = false;
    strategy.has_law = false;
    strategy.value.clear();
    strategy.picture = "picture of " + strategy.name;
    strategy.teacher_picture = "picture of the teacher";
  }
  const auto html = RenderHtml(example.input);
  ASSERT_TRUE(html.ok()) << html.status();
  for (const char* bytes : {"picture of vanilla", "picture of boot", "picture of the teacher"}) {
    EXPECT_THAT(*html, HasSubstr("data:image/png;base64," + absl::Base64Escape(bytes)));
  }
  EXPECT_THAT(*html, HasSubstr("alt=\"Samples of boot\""));
  // Without pictures, dots.
  for (StrategyResult& strategy : example.input.strategies) strategy.picture.clear();
  EXPECT_THAT(*RenderHtml(example.input), Not(HasSubstr(absl::Base64Escape("picture of the"))));
}

TEST(ReportTest, FiguresThatAreNotFiniteAreSaidToBeSo) {
  Example example({});
  StrategyResult& run = example.input.strategies[2];
  run.achieved_objective = run.achieved_objective_teacher = NAN;
  run.predicted_with_noise = INFINITY;
  run.spread = NAN;
  run.value[3] = NAN;
  run.value[4] = -INFINITY;
  run.merges[0].final_loss = NAN;
  run.law_test->adjusted_p = NAN;
  const std::string html = Page(example.input);
  EXPECT_THAT(html, HasSubstr("not finite"));
  for (StrategyResult& s : example.input.strategies) s.achieved_objective = NAN;
  EXPECT_THAT(Plain(Page(example.input)),
              HasSubstr("None of the 5 runs ended with a finite error."));
}

TEST(ReportTest, PartsOfDifferentProblemsAreRefused) {
  const auto error = [](void (*change)(Example&)) {
    Example example({.shape = {4, 4}, .strategies = {"boot", "vanilla"}});
    change(example);
    const auto html = RenderHtml(example.input);
    EXPECT_FALSE(html.ok());
    EXPECT_EQ(html.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(html.status().message());
  };
  EXPECT_THAT(error([](Example& e) { e.input.strategies[1].document.alpha[1] *= 0.999; }),
              HasSubstr("strategy \"vanilla\" was run with another noise schedule"));
  EXPECT_THAT(error([](Example& e) { e.input.strategies[0].document.variances[0] += 1; }),
              HasSubstr("strategy \"boot\" was run with other variances"));
  EXPECT_THAT(error([](Example& e) { e.input.strategies[0].document.plan = HybridPlan(8, 1); }),
              HasSubstr("8 teacher steps"));
  EXPECT_THAT(error([](Example& e) { e.plan.tables.emplace(); }), HasSubstr("bare tables"));
  EXPECT_THAT(error([](Example& e) { e.input.strategies[0].value.pop_back(); }),
              HasSubstr("value has 15 values, expected 16"));
  EXPECT_THAT(
      error([](Example& e) { e.input.strategies[0].document.reference = Reference::kTeacher; }),
      HasSubstr("another reference (teacher)"));
  EXPECT_THAT(error([](Example& e) { e.spectrum.covariance.pop_back(); }),
              HasSubstr("covariance of the spectrum has 255 entries"));
  EXPECT_THAT(error([](Example& e) { e.spectrum.pca.variances.clear(); }),
              HasSubstr("basis \"pca\""));
  EXPECT_THAT(error([](Example& e) {
                e.plan.variances.push_back(1);
                e.input.strategies.clear();
              }),
              HasSubstr("the spectrum has 16 dimensions and the plan 17"));
  EXPECT_THAT(error([](Example& e) {
                e.plan.alpha.pop_back();
                e.input.strategies.clear();
              }),
              HasSubstr("schedule of 16 levels"));
}

TEST(ReportTest, TheCertificateIsPutInWords) {
  Example example({});
  EXPECT_THAT(Plain(Page(example.input)), HasSubstr("the plan is at most 0.6 % of its own error"));
  example.plan.status = "optimal";
  EXPECT_THAT(Plain(Page(example.input)), HasSubstr("The plan is proven to be optimal"));
  example.plan.status = "time_limit";
  example.plan.lower_bound = 0;
  const std::string text = Plain(Page(example.input));
  EXPECT_THAT(text, HasSubstr("nothing is proven about how far the best is"));
  EXPECT_THAT(text, HasSubstr("ended at its time limit"));
}

}  // namespace
}  // namespace mergeplan
