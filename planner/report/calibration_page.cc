#include "planner/report/calibration_page.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "planner/report/arcs.h"
#include "planner/report/calibration_charts.h"
#include "planner/report/html.h"
#include "planner/report/style.h"
#include "planner/report/text.h"

namespace mergeplan {
namespace {

std::string IntervalHtml(double value, double low, double high) {
  return absl::StrCat(NumberHtml(value), " <span class=\"soft\">", ShortNumber(low, 3), " to ",
                      ShortNumber(high, 3), "</span>");
}
std::string IntervalHtml(const ErrorRange& e) { return IntervalHtml(e.value, e.low, e.high); }

std::string Factor(double predicted, double measured) {
  return measured > 0 ? absl::StrCat(NumberHtml(predicted / measured, 3), " ×") : "–";
}

std::string Paragraph(const std::string& html, const std::string& css_class = "") {
  return absl::StrCat(css_class.empty() ? "<p>" : absl::StrCat("<p class=\"", css_class, "\">"),
                      html, "</p>\n");
}

std::string OtherRule(const CalibrationPage& page) {
  return page.tables.combine == Combine::kSum ? "rms" : "sum";
}

// How well the models predict, and what to make of it.
std::string Header(const CalibrationPage& page) {
  std::string out = absl::StrCat("<header>\n<h1>", Escape(page.title), "</h1>\n");
  if (page.judged_merges == 0) {
    out += Paragraph(
        "No merge was held out, so nothing says how well this model predicts; errors are added "
        "up, which is a bound.",
        "verdict bad");
  } else {
    out += Paragraph(
        absl::StrCat("Of ", Count(page.judged_merges, "merge"),
                     " that no fit has seen the measured model’s predictions are typically off by "
                     "a factor of ",
                     NumberHtml(page.factor, 3), ", the linear model’s by ",
                     NumberHtml(page.linear_factor, 3), "."),
        "verdict");
  }
  if (page.judged_merges > 0 && page.linear_factor < page.factor) {
    out += Paragraph(
        "The linear model predicts better here than the measured one. Trust neither plan without "
        "a bench, or calibrate with more updates and replicates.",
        "bad");
  } else if (page.factor > 1.5) {
    out += Paragraph(
        "This is a poor fit: differences between plans below that factor mean nothing.", "bad");
  } else if (2 * page.within < page.judged_merges) {
    out += Paragraph(
        "The intervals are too narrow: most held-out merges lie outside of theirs, so what is "
        "said of draws is too sure.",
        "bad");
  }
  const CalibrationPlan &ours = page.plans[0], &linear = page.plans[1];
  if (ours.plan == linear.plan) {
    out += Paragraph(absl::StrCat("Both models plan the same: ", Escape(DescribePlan(ours.plan))));
  } else {
    out += Paragraph(absl::StrCat(
        "By the measured model its plan is better than the linear model’s by a factor of ",
        NumberHtml(linear.error.value / ours.error.value, 3), ", in ",
        Percent(page.better_in_draws), " of draws within the intervals, with ",
        Count(ours.plan.size(), "merge"), " in place of ", Grouped(linear.plan.size()), "."));
    if (page.judged_merges > 0 && linear.error.value < page.factor * ours.error.value) {
      out += Paragraph("That is less than the model is typically wrong by: a bench must decide.",
                       "bad");
    }
  }
  if (!page.complete) {
    out += Paragraph("The calibration was stopped before all of its pilots.", "bad");
  }
  if (!page.failure.empty()) {
    out += Paragraph(absl::StrCat("A pilot failed: ", Escape(page.failure)), "bad");
  }
  return out + "</header>\n";
}

std::string PilotSection(const CalibrationPage& page) {
  std::string out = absl::StrCat(
      "<section>\n<h2>Pilots</h2>\n<p>", Count(static_cast<long long>(page.pilots.size()), "merge"),
      " trained for ", Grouped(page.pilot_updates), " updates each: ", Grouped(page.updates),
      " updates, ", Grouped(page.teacher_calls), " teacher calls, ",
      NumberHtml(page.seconds / 60, 3), " minutes. Errors are root mean squares over held-out ",
      "rows, against the merge’s own target. ",
      page.spread_of_seeds
          ? absl::StrCat("From one seed to the next they differ by ", Percent(page.spread), ".")
          : absl::StrCat("They differ by ", Percent(page.spread),
                         " from their curves; seeds were not repeated, so that intervals do not "
                         "hold their spread."),
      "</p>\n<div class=\"grid\">\n");
  std::vector<std::vector<const CalibrationPilot*>> merges;
  for (const CalibrationPilot& pilot : page.pilots) {
    const auto same = std::find_if(merges.begin(), merges.end(), [&](const auto& seeds) {
      return seeds.front()->range == pilot.range && seeds.front()->trained == pilot.trained;
    });
    if (same == merges.end()) {
      merges.push_back({&pilot});
    } else {
      same->push_back(&pilot);
    }
  }
  for (const auto& seeds : merges) {
    absl::StrAppend(&out, "<figure>\n<h3>", MergeText(seeds[0]->range, seeds[0]->trained),
                    seeds[0]->held_out ? " (held out)" : "", "</h3>\n", PilotChart(seeds),
                    "\n</figure>\n");
  }
  absl::StrAppend(&out, "</div>\n<div class=\"legend\">\n", Key("achieved", "measured, every seed"),
                  Key("one", "fitted, with its interval"),
                  "</div>\n<p class=\"soft\">Dashed: the untrained student.</p>\n",
                  OpenTable("Pilots"),
                  Head({"Merge", "Level", "Span", "Seeds", "Start", "Error after training",
                        "Fitted", "Left of the start", "Fitted"}));
  for (const auto& seeds : merges) {
    const CalibrationPilot& one = *seeds[0];
    double log_error = 0;
    for (const CalibrationPilot* pilot : seeds) log_error += std::log(pilot->error.back());
    // Their geometric mean, as the fit has it.
    const double error = std::exp(log_error / static_cast<double>(seeds.size()));
    const ErrorRange& fitted = one.fitted.back();
    const auto left = [&](double value) {
      return one.start > 0 ? NumberHtml(value / one.start, 3) : std::string("–");
    };
    out += Row(absl::StrCat(MergeText(one.range, one.trained), one.held_out ? " (held out)" : ""),
               {Grouped(one.range.last), Grouped(one.range.last - one.range.first + 1),
                Grouped(static_cast<long long>(seeds.size())), NumberHtml(one.start, 3),
                absl::StrCat(NumberHtml(error, 3), " <span class=\"soft\">± ",
                             ShortNumber(1.96 * one.standard_error.back(), 2), "</span>"),
                NumberHtml(fitted.value, 3), left(error), left(fitted.value)},
               "words");
  }
  return absl::StrCat(out, kCloseTable,
                      "<p class=\"soft\">Level: where the merge starts. Span: teacher steps that "
                      "it stands for. ±: 1.96 standard errors of the held-out rows.</p>\n"
                      "</section>\n");
}

struct TableFacts {
  const char *symbol, *heading, *axis, *words;
  const std::vector<MeasuredEntry>* entries;
};

std::vector<TableFacts> TablesOf(const CalibrationPage& page) {
  return {
      {"g", "Distance g", "g", "from a merge’s start to its target", &page.tables.distance},
      {"r", "Residual r", "r", "share of the distance that training leaves", &page.tables.residual},
      {"f", "Floor f", "f", "what training does not get below", &page.tables.floor},
      {"Λ", "Gain Λ", "Λ", "by how much the steps below enlarge an error", &page.tables.gain}};
}

std::string TableSection(const CalibrationPage& page) {
  std::string out = absl::StrCat(
      "<section>\n<h2>The measured model</h2>\n<p>The error of a merge is ",
      page.tables.combine == Combine::kSum
          ? "the sum of Λ times the error of each child, r g, and f."
          : "the root of the sum of the squares of Λ times the error of each child, r g, and f.",
      " ", Percent(page.floor_share),
      " of what its curve does not learn stays wherever a merge starts.</p>\n"
      "<div class=\"grid\">\n");
  for (const TableFacts& table : TablesOf(page)) {
    absl::StrAppend(
        &out, "<figure>\n<h3>", table.heading, "</h3>\n",
        TableChart(absl::StrCat(table.heading, ": ", table.words), table.axis, *table.entries),
        "\n<figcaption>", table.words, "</figcaption>\n</figure>\n");
  }
  absl::StrAppend(&out, "</div>\n<div class=\"legend\">\n",
                  Key("spread", "from the teacher’s weights, with interval"),
                  Key("two", "from a trained child’s"),
                  "</div>\n<p class=\"soft\">Merges of one length stand side by side, from the "
                  "clean end to the noisy one; residuals are those after the most updates.</p>\n");
  for (const TableFacts& table : TablesOf(page)) {
    absl::StrAppend(&out, "<details>\n<summary>All of ", table.symbol, " (",
                    Count(static_cast<long long>(table.entries->size()), "number"), ")</summary>\n",
                    OpenTable(table.heading));
    const bool starts = table.symbol[0] == 'g', updates = table.symbol[0] == 'r';
    std::vector<std::string> columns = {"Steps", "Value", "Low", "High"};
    if (starts) columns.insert(columns.begin() + 1, "Child begins at");
    if (updates) columns.insert(columns.begin() + 1, "Updates");
    out += Head(columns);
    for (const MeasuredEntry& e : *table.entries) {
      std::vector<std::string> cells = {NumberHtml(e.value), NumberHtml(e.low), NumberHtml(e.high)};
      if (starts) cells.insert(cells.begin(), e.start == 0 ? "any" : Grouped(e.start));
      if (updates) cells.insert(cells.begin(), Grouped(e.updates));
      out += Row(StepsText({e.first, e.last}), cells);
    }
    absl::StrAppend(&out, kCloseTable, "</details>\n");
  }
  return out + "</section>\n";
}

std::string JudgedSection(const CalibrationPage& page) {
  if (page.judged.empty()) return "";
  std::string out = absl::StrCat(
      "<section>\n<h2>Merges that no fit has seen</h2>\n<figure>\n", JudgedChart(page.judged),
      "\n<div class=\"legend\">\n", Key("ring", "measured model"), Key("spread", "its interval"),
      Key("achieved", "linear model"),
      "</div>\n<figcaption>Predicted over measured error against the teacher’s steps. On the "
      "dashed line a prediction is right. Filled: merges whose own error was fitted, which is "
      "not the error here.</figcaption>\n</figure>\n",
      OpenTable("Judged merges"),
      Head({"Merge", "Measured", "Measured model", "Off", "Linear model", "Off"}));
  for (const CalibrationJudged& j : page.judged) {
    out += Row(absl::StrCat(MergeText(j.range, j.trained), j.held_out ? "" : " (own fitted)"),
               {absl::StrCat(NumberHtml(j.measured), " <span class=\"soft\">± ",
                             ShortNumber(1.96 * j.standard_error, 2), "</span>"),
                IntervalHtml(j.predicted), Factor(j.predicted.value, j.measured),
                NumberHtml(j.linear), Factor(j.linear, j.measured)});
  }
  absl::StrAppend(&out, kCloseTable);
  if (page.judged_merges > 0) {
    absl::StrAppend(&out, "<p>", Grouped(page.within), " of ", Grouped(page.judged_merges),
                    " held-out merges lie inside the measured model’s intervals. Its rule “",
                    std::string(ToString(page.tables.combine)), "” is off by a factor of ",
                    NumberHtml(page.factor, 3), ", “", OtherRule(page), "” by ",
                    NumberHtml(page.other_rule_factor, 3),
                    "; the linear model, with its best time s = ", NumberHtml(page.linear_time, 3),
                    ", by ", NumberHtml(page.linear_factor, 3), ".</p>\n");
  }
  return out + "</section>\n";
}

std::string PlanSection(const CalibrationPage& page) {
  std::string out = "<section>\n<h2>What both models plan</h2>\n<div class=\"grid\">\n";
  for (int k = 0; k < 2; ++k) {
    const CalibrationPlan& plan = page.plans[static_cast<std::size_t>(k)];
    ArcPicture picture;
    picture.standalone = false;
    picture.small = true;
    absl::StrAppend(&out, "<figure>\n<h3>", Escape(plan.name), "</h3>\n",
                    ArcPlotSvg(plan.plan, picture), "\n<figcaption>",
                    Escape(DescribePlan(plan.plan)), "</figcaption>\n</figure>\n");
  }
  absl::StrAppend(&out, "</div>\n", OpenTable("Plans under both models"),
                  Head({"Plan", "Merges", "Error, measured model", "Same total of updates",
                        "Error, linear model"}));
  const auto best = std::min_element(page.plans.begin(), page.plans.end(),
                                     [](const CalibrationPlan& a, const CalibrationPlan& b) {
                                       return a.error.value < b.error.value;
                                     });
  for (auto plan = page.plans.begin(); plan != page.plans.end(); ++plan) {
    out += Row(plan->name,
               {Grouped(plan->plan.size()), IntervalHtml(plan->error),
                plan->same_total ? IntervalHtml(*plan->same_total) : "–", NumberHtml(plan->linear)},
               plan == best ? "best" : "");
  }
  return absl::StrCat(out, kCloseTable, "<p class=\"soft\">Errors of the whole student, ",
                      Grouped(page.iterations),
                      " updates per merge; same total: as many in all as BOOT makes, shared at "
                      "best.</p>\n</section>\n");
}

std::string FactSection(const CalibrationPage& page) {
  std::string files;
  for (const std::string& file : page.files) {
    absl::StrAppend(&files, files.empty() ? "" : ", ", "<span class=\"path\">", Escape(file),
                    "</span>");
  }
  return absl::StrCat(
      "<section>\n<h2>Made with</h2>\n<dl>\n", Definition("Teacher", Escape(page.teacher)),
      Definition("Teacher steps", Grouped(page.tables.teacher_steps)),
      Definition("Start of merges", Escape(page.start)), Definition("Inputs", Escape(page.inputs)),
      Definition("Training", Escape(page.training)),
      Definition("Source", Escape(page.tables.source)), Definition("Files", files),
      "</dl>\n</section>\n");
}

absl::Status Check(const CalibrationPage& page) {
  if (page.plans.size() < 2) {
    return absl::InvalidArgumentError("a calibration has two plans or more, the measured first");
  }
  for (const CalibrationPlan& plan : page.plans) {
    if (plan.plan.teacher_steps() == page.tables.teacher_steps) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(plan.name, ": is a plan of ", plan.plan.teacher_steps(),
                     " teacher steps, the tables are of ", page.tables.teacher_steps));
  }
  for (const CalibrationPilot& pilot : page.pilots) {
    const std::size_t n = pilot.updates.size();
    if (n > 0 && pilot.error.size() == n && pilot.standard_error.size() == n &&
        pilot.fitted.size() == n) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat("the pilot ",
                                                   MergeText(pilot.range, pilot.trained),
                                                   " has curves of different lengths, or none"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> RenderCalibration(const CalibrationPage& page) {
  const absl::Status fits = Check(page);
  if (!fits.ok()) return fits;
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n<title>",
      Escape(page.title), "</title>\n<style>", PageCss(), "</style>\n</head>\n<body>\n<main>\n",
      Header(page), PilotSection(page), TableSection(page), JudgedSection(page), PlanSection(page),
      FactSection(page), "</main>\n</body>\n</html>\n");
}

}  // namespace mergeplan
