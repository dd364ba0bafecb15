#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/operators/canonical.h"
#include "planner/report/arcs.h"
#include "planner/report/charts.h"
#include "planner/report/html.h"
#include "planner/report/sections.h"
#include "planner/report/text.h"

namespace mergeplan {
namespace {

std::string SmallArcs(const std::string& name, const Plan& plan) {
  return absl::StrCat("<figure>\n<h3>", Escape(name), "</h3>\n",
                      ArcPlotSvg(plan, {.title = absl::StrCat(name, ". ", DescribePlan(plan)),
                                        .standalone = false,
                                        .small = true}),
                      "\n<figcaption>", Count(plan.size(), "merge"), " in ",
                      Count(plan.rounds(), "round"), "</figcaption>\n</figure>\n");
}

// How many dimensions lie within two standard deviations of what the law expects; "" if unknown.
std::string WithinSpread(const StrategyResult& s) {
  if (s.value_spread.empty() || s.value.empty() || s.expected_value.empty()) return "";
  int counted = 0, within = 0;
  for (size_t k = 0; k < s.value.size(); ++k) {
    if (!(s.value_spread[k] > 0) || !std::isfinite(s.value[k])) continue;
    ++counted;
    within += std::abs(s.value[k] - s.expected_value[k]) <= 2 * s.value_spread[k];
  }
  if (counted == 0) return "";
  return absl::StrCat(Grouped(within), " of ", Count(counted, "dimension"),
                      " within two standard deviations of the law");
}

// With the half width of its 95 % interval, where it is a mean over drawn rows.
std::string AchievedHtml(const StrategyResult& s) {
  const std::string figure = NumberHtml(s.achieved_objective);
  if (!s.standard_error) return figure;
  return absl::StrCat(figure, " ± ", NumberHtml(1.96 * *s.standard_error, 2));
}

// The training of one strategy, merge by merge. Of many merges those that learnt least.
std::string TrainingDetails(const StrategyResult& s) {
  constexpr size_t kMost = 64;
  std::int64_t updates = 0, calls = 0;
  std::vector<MergeRecord> records = s.merges;
  for (const MergeRecord& m : records) {
    updates += m.updates;
    calls += m.teacher_calls;
  }
  std::string out = absl::StrCat("<details>\n<summary>", Escape(s.name), ": ",
                                 Count(static_cast<int>(records.size()), "merge"), ", ",
                                 Count(updates, "update"), ", ", Count(calls, "teacher call"), ", ",
                                 ShortNumber(s.seconds, 3), " s</summary>\n");
  const bool cut = records.size() > kMost;
  if (cut) {
    std::stable_sort(
        records.begin(), records.end(),
        [](const MergeRecord& a, const MergeRecord& b) { return a.residual() > b.residual(); });
    records.resize(kMost);
  }
  absl::StrAppend(&out, OpenTable(absl::StrCat("Training of ", s.name)),
                  Head({"Steps", "Round", "First loss", "Last loss", "Residual fraction", "Updates",
                        "Teacher calls", "Seconds"}));
  for (const MergeRecord& m : records) {
    out += Row(absl::StrCat(m.first, "–", m.last),
               {Grouped(m.round), NumberHtml(m.initial_loss), NumberHtml(m.final_loss),
                NumberHtml(m.residual(), 3), Grouped(m.updates), Grouped(m.teacher_calls),
                NumberHtml(m.seconds, 3)});
  }
  out += kCloseTable;
  if (cut) {
    absl::StrAppend(&out, "<p class=\"soft\">The ", kMost, " merges that learnt least, of ",
                    Grouped(static_cast<long long>(s.merges.size())), ".</p>\n");
  }
  return absl::StrCat(out, "</details>\n");
}

}  // namespace

std::string ResultsTable(const ReportInput& input, const ReportFacts& facts) {
  if (facts.plan == nullptr) return "";
  const PlanDocument& plan = *facts.plan;
  if (input.strategies.empty()) {
    if (plan.strategies.empty()) return "";
    std::string out = absl::StrCat(OpenTable("Predicted error of every strategy"),
                                   Head({"Strategy", "Predicted, same time per merge",
                                         "Predicted, same time in all", "Merges trained"}));
    const auto row = [&](const std::string& name, double same, std::optional<double> equal,
                         int merges) {
      out += Row(name, {NumberHtml(same), NumberOrDash(equal), Grouped(merges)});
    };
    row("the plan", plan.objective, plan.objective_equal_total_time, plan.plan.size());
    for (const StrategyFigures& s : plan.strategies) {
      row(s.name, s.objective, s.objective_equal_total_time, s.merges_trained);
    }
    return absl::StrCat(out, kCloseTable);
  }
  bool law = false;
  for (const StrategyResult& s : input.strategies) law = law || s.law_test.has_value();
  std::vector<std::string> columns = {"Strategy",
                                      "Predicted",
                                      "Predicted, with SGD noise",
                                      "Achieved",
                                      "Spread of a run (±)",
                                      "Achieved, against the teacher",
                                      "Merges trained",
                                      "Predicted at equal total time"};
  if (law) columns.emplace_back("p (law)");
  std::string out = absl::StrCat(OpenTable("Results of every strategy"), Head(columns));
  for (size_t k = 0; k < input.strategies.size(); ++k) {
    const StrategyResult& s = input.strategies[k];
    std::vector<std::string> cells = {NumberHtml(s.predicted_objective),
                                      NumberHtml(s.predicted_with_noise),
                                      AchievedHtml(s),
                                      NumberOrDash(s.spread, 2),
                                      NumberHtml(s.achieved_objective_teacher),
                                      Grouped(s.document.plan.size()),
                                      NumberOrDash(EqualTotalTime(s, input))};
    if (law) cells.push_back(s.law_test ? NumberHtml(s.law_test->adjusted_p, 2) : "–");
    out += Row(s.name, cells, static_cast<int>(k) == facts.best ? "best" : "");
  }
  absl::StrAppend(
      &out, kCloseTable, "<p class=\"soft\">Errors are Σ w (τ − V)² over ",
      Count(plan.dimensions(), "dimension"), ", against ", ReferenceWords(plan.reference),
      " where not said otherwise: V is what the student multiplies noise by, τ what it should. "
      "“Predicted” is the error at the mean of the law; the noise of SGD adds the variance of V. "
      "Hold the pointer over a number for all its digits.</p>\n");
  return out;
}

std::string PlanSection(const ReportInput& input, const ReportFacts& facts) {
  if (facts.plan == nullptr) return "";
  std::string out = "<section>\n<h2>Merge schedules</h2>\n";
  if (input.plan != nullptr) {
    const Plan& plan = input.plan->plan;
    absl::StrAppend(
        &out, "<figure>\n", ArcPlotSvg(plan, {.title = "", .standalone = false}),
        "\n<figcaption>The plan. ", Escape(DescribePlan(plan)),
        " Every arc is one merge, from the noise level where it starts (right) to the "
        "one where it lands (left). Faint arcs are trained first, strong ones last. "
        "Dots on an arc, where there is room, part the pieces of a merge of three or more",
        plan.student_steps() > 1 ? "; ticks across the line part the student’s steps" : "",
        ".</figcaption>\n</figure>\n");
    const std::string text = plan.ToString();
    if (text.size() <= 400) absl::StrAppend(&out, "<pre>", Escape(text), "</pre>\n");
  }
  std::string small;
  if (!input.strategies.empty()) {
    for (const StrategyResult& s : input.strategies) small += SmallArcs(s.name, s.document.plan);
  } else {
    for (const StrategyFigures& s : facts.plan->strategies) {
      const auto strategy = ParseStrategy(s.name);
      if (!strategy.ok()) continue;
      const auto plan = CanonicalPlan(*strategy, facts.plan->plan.teacher_steps(),
                                      facts.plan->plan.student_steps());
      if (plan.ok()) small += SmallArcs(s.name, *plan);
    }
  }
  if (!small.empty()) absl::StrAppend(&out, "<div class=\"grid\">\n", small, "</div>\n");
  return absl::StrCat(out, "</section>\n");
}

std::string ErrorSection(const ReportInput& input, const ReportFacts& facts) {
  if (input.strategies.empty()) return "";
  std::string out = absl::StrCat(
      "<section>\n<h2>Predicted and achieved</h2>\n<figure>\n<div class=\"legend\">\n",
      Key("ring", "predicted, at the mean of the law"),
      Key("spread", "expected with SGD noise, ± its spread"), Key("achieved", "achieved"),
      "</div>\n", ErrorChart(input.strategies), "\n<figcaption>Error of every strategy against ",
      ReferenceWords(facts.plan->reference),
      ", log scale; further left is better.</figcaption>\n</figure>\n");
  std::string grid;
  for (const StrategyResult& s : input.strategies) {
    if (s.value.empty() || s.expected_value.empty()) continue;
    absl::StrAppend(&grid, "<figure>\n<h3>", Escape(s.name), "</h3>\n", ErrorScatter(s, facts.tau),
                    "\n<figcaption>", WithinSpread(s), "</figcaption>\n</figure>\n");
  }
  if (!grid.empty()) {
    absl::StrAppend(&out,
                    "<h3>Dimension by dimension</h3>\n<p>Signed error V − τ, one dot per "
                    "dimension; on the dashed line achieved equals predicted. The scales differ "
                    "from strategy to strategy.</p>\n<div class=\"grid\">\n",
                    grid, "</div>\n");
  }
  std::string training;
  for (const StrategyResult& s : input.strategies) {
    if (!s.merges.empty()) training += TrainingDetails(s);
  }
  if (!training.empty()) {
    absl::StrAppend(&out, "<h3>Training, merge by merge</h3>\n", training);
  }
  return absl::StrCat(out, "</section>\n");
}

}  // namespace mergeplan
