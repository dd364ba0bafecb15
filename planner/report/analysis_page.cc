#include "planner/report/analysis_page.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "planner/base/status_macros.h"
#include "planner/report/charts.h"
#include "planner/report/facts.h"
#include "planner/report/html.h"
#include "planner/report/report.h"
#include "planner/report/sections.h"
#include "planner/report/style.h"
#include "planner/report/svg.h"
#include "planner/report/text.h"
#include "planner/spectrum/figures.h"

namespace mergeplan {
namespace {

constexpr std::size_t kMostChannels = 64;

// With a capital at the beginning and a full stop at the end.
std::string Sentence(std::string words) {
  if (words.empty()) return words;
  words[0] = absl::ascii_toupper(static_cast<unsigned char>(words[0]));
  if (words.back() != '.') words += '.';
  return words;
}

std::optional<double> Known(double error) {
  if (std::isnan(error)) return std::nullopt;
  return error;
}

std::string VerdictWords(const AnalysisPage& page) {
  if (page.verdict == "gaussian") return "Nothing tells this data from normal data.";
  if (page.verdict == "not-gaussian")
    return "This data is not normal, but no second mode was found.";
  if (page.verdict == "multimodal") return "This data has several modes.";
  if (page.verdict == "untested") return "Whether this data is normal could not be tested.";
  return "Whether this data is normal was not asked.";
}

std::string RegimeWords(const AnalysisPage& page) {
  const Basis& basis = *page.chosen;
  const auto all = static_cast<long long>(basis.variances.size());
  const auto above =
      std::count_if(basis.variances.begin(), basis.variances.end(), [](double v) { return v > 1; });
  const BasisFigures figures = FiguresOf(basis, page.spectrum->confidence);
  std::string out = absl::StrCat("Along ",
                                 basis.name == "pca"   ? "the principal axes"
                                 : basis.name == "dct" ? "the cosine transform’s axes"
                                                       : "the data’s own axes",
                                 " ", Grouped(above), " of ", Grouped(all),
                                 " variances are above that of the noise (λ\u00a0&gt;\u00a01)");
  if (figures.undecided > 0) {
    absl::StrAppend(&out, ", ", Grouped(figures.undecided), " of which or beside which ",
                    figures.undecided == 1 ? "is" : "are", " too near to 1 to tell");
  }
  return out + ".";
}

std::string Header(const AnalysisPage& page, const std::string& title) {
  const Spectrum& spectrum = *page.spectrum;
  std::string out =
      absl::StrCat("<header>\n<h1>", title, "</h1>\n<p class=\"verdict\">", VerdictWords(page), " ",
                   RegimeWords(page), "</p>\n<p>", Grouped(spectrum.samples), " samples of ",
                   absl::StrJoin(spectrum.shape, " × "), " values");
  if (spectrum.skipped > 0) {
    absl::StrAppend(&out, ", ", Grouped(spectrum.skipped), " left out because they are not finite");
  }
  absl::StrAppend(&out, "; scaling “", Escape(spectrum.scaling.text), "”.</p>\n");
  if (!page.strategy.empty()) {
    absl::StrAppend(&out, "<p>Recommended strategy: <b>", Escape(page.strategy), "</b>. ",
                    Escape(page.strategy_reason), "</p>\n");
    for (const std::string* more : {&page.how_sure, &page.network_advice}) {
      if (!more->empty()) absl::StrAppend(&out, "<p>", Escape(Sentence(*more)), "</p>\n");
    }
  }
  return out + "</header>\n";
}

std::string NormalitySection(const AnalysisPage& page) {
  if (page.verdict.empty()) return "";
  std::string out = absl::StrCat("<section>\n<h2>Is the data normal?</h2>\n<p>",
                                 Escape(Sentence(page.verdict_words)), "</p>\n");
  if (page.tests.empty()) return out + "</section>\n";
  absl::StrAppend(&out, OpenTable("Tests of normality"),
                  Head({"Test", "Of", "Statistic", "p-value", "At the level"}));
  for (const TestRow& row : page.tests) {
    out += Row(row.name,
               {Escape(row.of), NumberOrDash(row.statistic), NumberHtml(row.p, 2),
                row.p < page.level ? "rejected" : "not rejected"},
               "words");
  }
  return absl::StrCat(out, kCloseTable,
                      "<p class=\"soft\">p-values are corrected for the tests in "
                      "their row; the verdict counts the rows, too. Level ",
                      absl::StrReplaceAll(Percent(page.level), {{" ", "\u00a0"}}),
                      ".</p>\n</section>\n");
}

std::string ChannelSection(const AnalysisPage& page) {
  if (page.channels == nullptr) return "";
  const ChannelReport& report = *page.channels;
  std::string out = "<section>\n<h2>To mean 0 and variance 1</h2>\n";
  if (report.scaling_factor == 0) {
    return out + "<p>The data has no variance, so none can be scaled to 1.</p>\n</section>\n";
  }
  absl::StrAppend(&out, "<p>(x ", report.shift_factor < 0 ? "+ " : "− ",
                  NumberHtml(std::abs(report.shift_factor), 5), ") · ",
                  NumberHtml(report.scaling_factor, 5),
                  " brings all values together to mean 0 and variance 1 (shift and scaling factor");
  if (report.interval != "none") {
    absl::StrAppend(&out, ", standard errors ", NumberHtml(report.shift_factor_error, 2), " and ",
                    NumberHtml(report.scaling_factor_error, 2));
  }
  absl::StrAppend(&out, "); without a shift the factor is ",
                  NumberHtml(report.scaling_factor_uncentred, 5), ".</p>\n");
  const std::vector<ChannelStatistics>& channels = report.channels;
  if (channels.size() < 2) return out + "</section>\n";
  absl::StrAppend(&out, OpenTable("Channels"),
                  Head({"Channel", "Mean", "Standard error", "Standard deviation", "Standard error",
                        "Worth values"}));
  for (std::size_t c = 0; c < std::min(channels.size(), kMostChannels); ++c) {
    const ChannelStatistics& s = channels[c];
    out +=
        Row(absl::StrCat(c), {NumberHtml(s.mean, 5), NumberOrDash(Known(s.mean_error), 2),
                              NumberHtml(s.deviation, 5), NumberOrDash(Known(s.deviation_error), 2),
                              NumberOrDash(Known(s.effective))});
  }
  out += kCloseTable;
  if (channels.size() > kMostChannels) {
    absl::StrAppend(&out, "<p class=\"soft\">",
                    Grouped(static_cast<long long>(channels.size() - kMostChannels)),
                    " more channels are left out here; --json lists them.</p>\n");
  }
  return out + "</section>\n";
}

// The first of the leading directions, and what all of them carry.
std::string LeadingSection(const AnalysisPage& page) {
  constexpr std::size_t kRows = 16;
  const Spectrum& spectrum = *page.spectrum;
  if (!spectrum.has_leading()) return "";
  const Basis& leading = spectrum.leading;
  const std::size_t count = leading.variances.size();
  double total = 0, carried = 0;
  for (const double v : spectrum.diagonal.variances) total += v;
  std::string out = absl::StrCat(
      "<section>\n<h2>Leading principal directions</h2>\n<p>",
      Grouped(static_cast<long long>(count)), " of ", Grouped(spectrum.dimensions()),
      " directions were computed; they carry ", Percent(spectrum.LeadingShare()),
      " of the variance.</p>\n", OpenTable("Leading principal directions"),
      Head({"Direction", "Variance", "Interval", "Error of the computation", "Share up to here"}));
  for (std::size_t i = 0; i < count; ++i) {
    carried += leading.variances[i];
    // The first ones, and the last.
    if (i >= kRows && i + 1 < count) continue;
    out += Row(absl::StrCat(i + 1), {NumberHtml(leading.variances[i]),
                                     absl::StrCat(NumberHtml(leading.variances_low[i]), " to ",
                                                  NumberHtml(leading.variances_high[i])),
                                     NumberHtml(spectrum.leading_errors[i], 2),
                                     Percent(total > 0 ? carried / total : 0)});
  }
  return absl::StrCat(out, kCloseTable,
                      "<p class=\"soft\">An eigenvalue of the covariance lies within the error of "
                      "each variance; the interval is that of sampling.</p>\n</section>\n");
}

// Shares above 1 (from 0 to 1) or predicted errors (log scale), over the factor.
std::string CurveChart(const std::vector<ScalingRow>& curve, bool errors) {
  const double left = 64, right = kPageWidth - 18, top = 30, bottom = 250;
  const auto first = [&](const ScalingRow& r) {
    return errors ? r.objective : r.fraction_above_one;
  };
  const auto second = [&](const ScalingRow& r) {
    return errors ? r.plan_objective : r.energy_above_one;
  };
  double low = INFINITY, high = 0;
  for (const ScalingRow& row : curve) {
    for (const double v : {first(row), second(row)}) {
      if (v > 0) low = std::min(low, v);
      high = std::max(high, v);
    }
  }
  const Scale x = Scale::Log(curve.front().factor, curve.back().factor, left, right);
  const Scale y =
      errors ? Scale::Log(low / 1.3, high * 1.3, bottom, top) : Scale::Linear(0, 1, bottom, top);
  SvgCanvas canvas(kPageWidth, bottom + 48,
                   errors
                       ? "Predicted errors over the factor that the data is multiplied by"
                       : "Share of variances above 1 over the factor that the data is multiplied "
                         "by",
                   "wide");
  canvas.XAxis(x, top, bottom, "the data multiplied by", 8);
  canvas.YAxis(y, left, right, 6, 14, errors ? "predicted error" : "share above λ = 1", 6);
  for (const ScalingRow& row : curve) {
    if (row.mark.empty()) continue;
    canvas.Line({x(row.factor), top}, {x(row.factor), bottom}, "rule", row.mark);
    // The text stays inside the drawing.
    const bool flip = x(row.factor) > right - 90;
    canvas.Text({x(row.factor) + (flip ? -4 : 4), row.mark == "as it is" ? top + 12 : top + 26},
                row.mark, "note halo", flip ? "end" : "start");
  }
  for (const bool one : {true, false}) {
    std::vector<Point> line;
    for (const ScalingRow& row : curve) {
      const double value = one ? first(row) : second(row);
      if (y.Contains(value)) line.emplace_back(x(row.factor), y(value));
    }
    canvas.Polyline(line, one ? "one" : "two");
  }
  return canvas.Inline();
}

std::string CurveSection(const AnalysisPage& page) {
  if (page.curve.size() < 2) return "";
  const bool model = !page.curve.front().strategy.empty();
  std::string out =
      absl::StrCat("<section>\n<h2>What another scaling factor would change</h2>\n<figure>\n",
                   CurveChart(page.curve, false), "\n<div class=\"legend\">\n",
                   Key("one", "of the dimensions"), Key("two", "of the variance"),
                   "</div>\n<figcaption>Multiplying the data by a factor "
                   "multiplies every variance by its square. Basis: ",
                   Escape(page.chosen->name), ".</figcaption>\n</figure>\n");
  if (model) {
    absl::StrAppend(
        &out, "<figure>\n", CurveChart(page.curve, true), "\n<div class=\"legend\">\n",
        Key("one", "recommended strategy"), Key("two", "the planner’s own plan"),
        "</div>\n<figcaption>Predicted error at every factor. The target moves with the "
        "factor, so errors at different factors are of different tasks.</figcaption>\n"
        "</figure>\n");
  }
  std::vector<std::string> columns = {"Factor", "Regime", "Dimensions above 1", "Variance above 1"};
  if (model) columns.insert(columns.end(), {"Strategy", "Its error", "The plan’s"});
  absl::StrAppend(&out, "<details>\n<summary>All factors</summary>\n", OpenTable("Scaling factors"),
                  Head(columns));
  for (const ScalingRow& row : page.curve) {
    std::vector<std::string> cells = {row.regime, Percent(row.fraction_above_one),
                                      Percent(row.energy_above_one)};
    if (model) {
      cells.insert(cells.end(), {Escape(row.strategy), NumberHtml(row.objective),
                                 NumberHtml(row.plan_objective)});
    }
    out += Row(absl::StrCat(ShortNumber(row.factor),
                            row.mark.empty() ? "" : absl::StrCat(" (", row.mark, ")")),
               cells);
  }
  return absl::StrCat(out, kCloseTable, "</details>\n</section>\n");
}

}  // namespace

absl::StatusOr<std::string> RenderAnalysis(const AnalysisPage& page) {
  if (page.spectrum == nullptr || page.chosen == nullptr) {
    return absl::InvalidArgumentError("there is no spectrum to show");
  }
  ReportInput input;
  input.spectrum = page.spectrum;
  input.channels_with_spectrum = false;
  MP_ASSIGN_OR_RETURN(const ReportFacts facts, CheckInput(input));
  MP_ASSIGN_OR_RETURN(const std::string covariance, CovarianceSection(input));
  // The command below has the whole path.
  const std::string& source = page.spectrum->source;
  const std::string name = source.substr(source.find_last_of('/') + 1);
  const std::string title = Escape(absl::StrCat("What ", name.empty() ? source : name, " is like"));
  std::string command;
  if (!page.command.empty()) {
    command = absl::StrCat("<section>\n<h2>Made by</h2>\n<pre>", Escape(page.command),
                           "</pre>\n</section>\n");
  }
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n<title>",
      title, "</title>\n<style>", PageCss(), "</style>\n</head>\n<body>\n<main>\n",
      Header(page, title), NormalitySection(page), ChannelSection(page),
      SpectrumSection(input, facts), LeadingSection(page), covariance, CurveSection(page), command,
      "</main>\n</body>\n</html>\n");
}

}  // namespace mergeplan
