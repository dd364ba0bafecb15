#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/report/charts.h"
#include "planner/report/html.h"
#include "planner/report/pictures.h"
#include "planner/report/sections.h"
#include "planner/report/text.h"
#include "planner/spectrum/channels.h"
#include "planner/spectrum/figures.h"

namespace mergeplan {
namespace {

// How wide the confidence intervals are, for bands too thin to see: their half width as a share of
// the variance, at the median and at the widest.
std::string IntervalWidths(const Spectrum& spectrum) {
  std::vector<double> widths;
  for (const Basis* basis : BasesOf(spectrum)) {
    for (size_t k = 0; k < basis->variances_low.size() && k < basis->variances_high.size(); ++k) {
      const double variance = basis->variances[k];
      if (!(variance > 0)) continue;
      const double off =
          std::max(basis->variances_high[k] - variance, variance - basis->variances_low[k]);
      if (std::isfinite(off)) widths.push_back(off / variance);
    }
  }
  if (widths.empty()) return "";
  const auto middle = widths.begin() + static_cast<std::ptrdiff_t>(widths.size() / 2);
  std::nth_element(widths.begin(), middle, widths.end());
  const double median = *middle;
  const double widest = *std::max_element(widths.begin(), widths.end());
  if (widest < 1.05 * median) return absl::StrCat(", ±", Percent(widest));
  return absl::StrCat(", ±", Percent(median), " at the median, ±", Percent(widest),
                      " at the widest");
}

std::string IntervalWords(const Spectrum& spectrum) {
  const std::string& interval = BasesOf(spectrum).back()->interval;
  if (interval == "fourth-moment") return " from fourth moments";
  if (interval == "gaussian") return " for normal data";
  return "";
}

constexpr int kFewDimensions = 8;
constexpr std::size_t kMostChannels = 64;

// Scaling to unit variance, and channel by channel where there are several (but not for samples
// without positions, whose values are no channels to anybody).
std::string ChannelTable(const Spectrum& spectrum) {
  const absl::StatusOr<ChannelReport> report = DescribeChannels(spectrum);
  if (!report.ok() || report->scaling_factor == 0 || report->interval == "none") return "";
  std::string out = absl::StrCat(
      "<p>To mean 0 and variance 1: (x − ", NumberHtml(report->shift_factor, 5), ") · ",
      NumberHtml(report->scaling_factor, 5), " (shift and scaling factor, standard errors ",
      NumberHtml(report->shift_factor_error, 2), " and ",
      NumberHtml(report->scaling_factor_error, 2), ").</p>\n");
  const std::vector<ChannelStatistics>& channels = report->channels;
  if (spectrum.shape.size() < 3 || channels.size() < 2 || channels.size() > kMostChannels) {
    return out;
  }
  absl::StrAppend(
      &out, OpenTable("Channels"),
      Head({"Channel", "Mean", "Standard error", "Standard deviation", "Standard error"}));
  for (std::size_t c = 0; c < channels.size(); ++c) {
    out += Row(absl::StrCat(c),
               {NumberHtml(channels[c].mean, 5), NumberHtml(channels[c].mean_error, 2),
                NumberHtml(channels[c].deviation, 5), NumberHtml(channels[c].deviation_error, 2)});
  }
  return out + kCloseTable;
}

// What multiplies the noise, dimension by dimension, where there are few.
std::string ValueTable(const ReportInput& input, const ReportFacts& facts) {
  std::vector<std::string> columns = {"V"};
  for (size_t k = 0; k < facts.tau.size(); ++k) columns.push_back(absl::StrCat("dimension ", k));
  std::string out = absl::StrCat(OpenTable("What the students multiply noise by"), Head(columns));
  const auto row = [&](const std::string& name, const std::vector<double>& values) {
    std::vector<std::string> cells;
    for (double value : values) cells.push_back(NumberHtml(value, 6));
    out += Row(name, cells);
  };
  row("teacher (τ)", facts.tau_teacher);
  row("surrogate (τ)", facts.tau_surrogate);
  for (const StrategyResult& s : input.strategies) {
    if (!s.value.empty()) row(s.name, s.value);
  }
  return absl::StrCat(out, kCloseTable);
}

std::string StripHtml(const std::string& label, const std::string& detail, const std::string& uri,
                      const std::string& alt) {
  return absl::StrCat("<div class=\"strip\"><div><b>", Escape(label), "</b> <span>", Escape(detail),
                      "</span></div><img src=\"", uri, "\" alt=\"", Escape(alt), "\"/></div>\n");
}

std::string LineFigures(const SampleGrid& grid) {
  double low = INFINITY, high = -INFINITY;
  for (const SampleRow& row : grid.rows) {
    for (const auto& sample : row.x) {
      for (double v : sample) {
        if (!std::isfinite(v)) continue;
        low = std::min(low, v);
        high = std::max(high, v);
      }
    }
  }
  std::string out = "<div class=\"grid\">\n";
  for (const SampleRow& row : grid.rows) {
    absl::StrAppend(
        &out, "<figure>\n<h3>", Escape(row.label), "</h3>\n",
        VectorChart(absl::StrCat("Samples of ", row.label, " as lines"), row.x, low, high),
        "\n<figcaption>", Escape(row.detail), "</figcaption>\n</figure>\n");
  }
  return absl::StrCat(out, "</div>\n");
}

}  // namespace

std::string SpectrumSection(const ReportInput& input, const ReportFacts& facts) {
  const Spectrum* spectrum = input.spectrum;
  if (spectrum == nullptr) return "";
  const double scale = facts.plan != nullptr ? facts.plan->data_scale : 1.0;
  const int d = spectrum->dimensions();
  std::string out = absl::StrCat(
      "<section>\n<h2>Variances of the data</h2>\n<figure>\n",
      SpectrumChart(*spectrum, scale * scale), "\n<div class=\"legend\">\n",
      Key("one", "as stored (diagonal)"),
      BasesOf(*spectrum).size() > 1 ? Key("two", Along(*BasesOf(*spectrum)[1])) : "",
      spectrum->diagonal.variances_low.empty()
          ? ""
          : absl::StrCat("<span>bands: ", Percent(spectrum->confidence), " confidence intervals",
                         IntervalWords(*spectrum), IntervalWidths(*spectrum), "</span>\n"),
      "</div>\n<figcaption>Sorted variances of ", Count(d, "dimension"), " from ",
      Count(spectrum->samples, "sample"), ", after the scaling “", Escape(spectrum->scaling.text),
      "”. Above the line λ\u00a0=\u00a01 the data has more variance than the noise");
  if (scale != 1) absl::StrAppend(&out, " (variance ", NumberHtml(scale * scale), " as stored)");
  out += ".";
  for (const Basis* basis : BasesOf(*spectrum)) {
    const int missing = d - PositiveVariances(*basis);
    if (missing == 0) continue;
    absl::StrAppend(&out, " ", Count(missing, "variance"), " ", Along(*basis),
                    missing == 1 ? " is" : " are", " zero and left out.");
  }
  absl::StrAppend(&out, "</figcaption>\n</figure>\n", OpenTable("The bases"),
                  Head({"Basis", "Regime", "Dimensions with λ\u00a0&gt;\u00a01", "Largest variance",
                        "Smallest variance", "Off-diagonal energy", "Effective rank"}));
  for (const Basis* basis : spectrum->Bases()) {
    const auto [least, most] =
        std::minmax_element(basis->variances.begin(), basis->variances.end());
    // Counted here, since lambda = 1 lies at scale^2 for schedules that scale the data.
    const auto above = std::count_if(basis->variances.begin(), basis->variances.end(),
                                     [&](double v) { return v > scale * scale; });
    const char* regime = above == 0 ? "low" : above == d ? "high" : "mixed";
    out += Row(basis == &spectrum->pca   ? "principal axes (pca)"
               : basis == &spectrum->dct ? "cosine transform (dct)"
                                         : "as stored (diagonal)",
               {regime,
                absl::StrCat(Grouped(above), " of ", Grouped(d), " (",
                             Percent(static_cast<double>(above) / d), ")"),
                NumberHtml(*most), NumberHtml(*least),
                spectrum->has_covariance() ? Percent(basis->off_diagonal_energy) : "–",
                NumberHtml(FiguresOf(*basis, spectrum->confidence).effective_rank)});
  }
  out += kCloseTable;
  if (!spectrum->recommended_basis.empty()) {
    const std::string& reason = spectrum->recommended_basis_reason;
    absl::StrAppend(&out, "<p>Recommended basis: <b>", Escape(spectrum->recommended_basis), "</b>",
                    reason.empty() ? "" : ": ", Escape(reason),
                    reason.empty() || reason.back() != '.' ? "." : "", "</p>\n");
  }
  if (input.channels_with_spectrum) out += ChannelTable(*spectrum);
  return absl::StrCat(out, "</section>\n");
}

absl::StatusOr<std::string> CovarianceSection(const ReportInput& input) {
  const Spectrum* spectrum = input.spectrum;
  if (spectrum == nullptr || !spectrum->has_covariance()) return "";
  const int d = spectrum->dimensions();
  const std::string open = "<section>\n<h2>Covariance</h2>\n";
  if (d == 1) {
    return absl::StrCat(open, "<p>The data has one dimension; its variance is ",
                        NumberHtml(spectrum->covariance[0]), ".</p>\n</section>\n");
  }
  MP_ASSIGN_OR_RETURN(const Heatmap map, DrawHeatmap(spectrum->covariance, d));
  std::string out = absl::StrCat(
      open, "<div class=\"beside\">\n<figure>\n<img class=\"heat\" src=\"", map.data_uri,
      "\" alt=\"Covariance matrix of ", Count(d, "dimension"), " as colours, from −",
      ShortNumber(map.limit), " to ", ShortNumber(map.limit), "\"/>\n", ColourBar(map.limit),
      "\n<figcaption>Linear scale to ±", NumberHtml(map.limit), ", the largest cell; ",
      map.cell == 1 ? "one cell is one entry"
                    : absl::StrCat("one cell is the mean of ", map.cell, " × ", map.cell,
                                   " entries, ", map.side, " cells a side"),
      ".</figcaption>\n</figure>\n<div>\n");
  const double before = spectrum->diagonal.off_diagonal_energy;
  absl::StrAppend(&out, "<p>As stored, <b>", Percent(before),
                  "</b> of the energy of the covariance (its squared entries) lies off the "
                  "diagonal. ");
  if (spectrum->has_pca()) {
    const double after = spectrum->pca.off_diagonal_energy;
    absl::StrAppend(&out, "Along the principal axes it is ",
                    after < 1e-12 ? "nothing but rounding" : Percent(after), ".");
  } else {
    if (spectrum->has_dct()) {
      absl::StrAppend(&out, "Along the cosine transform’s axes it is ",
                      Percent(spectrum->dct.off_diagonal_energy), ". ");
    }
    out += "The principal axes were not computed.";
  }
  absl::StrAppend(
      &out, "</p>\n",
      "<p>The theory plans every dimension by itself, so it is exact for Gaussian data where the "
      "covariance is diagonal. ");
  if (input.plan != nullptr && input.plan->basis == "pca") {
    out += "This plan was made along the principal axes, where it is.";
  } else if (before > 0.01) {
    const bool cosine =
        !spectrum->has_pca() && spectrum->has_dct() && spectrum->dct.off_diagonal_energy < before;
    absl::StrAppend(&out, "This much correlation speaks for planning along the ",
                    cosine ? "cosine transform’s" : "principal", " axes.");
  } else {
    out += "Here it nearly is as the data stands.";
  }
  return absl::StrCat(out, "</p>\n</div>\n</div>\n</section>\n");
}

namespace {

std::string PictureFigure(const std::string& name, const std::string& png,
                          const std::string& caption) {
  return absl::StrCat("<figure>\n<h3>", Escape(name), "</h3>\n<img alt=\"Samples of ", Escape(name),
                      "\" src=\"data:image/png;base64,", absl::Base64Escape(png),
                      "\"/>\n<figcaption>", Escape(caption), "</figcaption>\n</figure>\n");
}

// The same where samples are pictures: one picture of many, side by side.
std::string PictureSection(const ReportInput& input) {
  std::string grid;
  for (const StrategyResult& s : input.strategies) {
    if (s.picture.empty()) continue;
    if (grid.empty() && !s.teacher_picture.empty()) {
      grid = PictureFigure("teacher", s.teacher_picture, "where the teacher leads");
    }
    grid += PictureFigure(s.name, s.picture, s.run_folder);
  }
  return absl::StrCat(
      "<section>\n<h2>Samples</h2>\n<p>The same noise through the teacher and every student, in "
      "reading order. Runs with other seeds begin with other noise.</p>\n<div class=\"grid\">\n",
      grid, "</div>\n</section>\n");
}

// Students that are no linear operators: what came out of the same noise, dot by dot.
std::string ScatterSection(const ReportInput& input, int d) {
  if (std::any_of(input.strategies.begin(), input.strategies.end(),
                  [](const StrategyResult& s) { return !s.picture.empty(); })) {
    return PictureSection(input);
  }
  std::string grid;
  const std::vector<double>* teacher = nullptr;
  for (const StrategyResult& s : input.strategies) {
    if (s.samples.empty() || s.teacher_samples.empty()) continue;
    if (teacher == nullptr) {
      teacher = &s.teacher_samples;
      absl::StrAppend(&grid, "<figure>\n<h3>teacher</h3>\n",
                      SampleScatter("Samples of the teacher", *teacher, *teacher, d),
                      "\n<figcaption>where the teacher leads</figcaption>\n</figure>\n");
    }
    double sum = 0;
    for (size_t i = 0; i < std::min(s.samples.size(), s.teacher_samples.size()); ++i) {
      sum += (s.samples[i] - s.teacher_samples[i]) * (s.samples[i] - s.teacher_samples[i]);
    }
    const double distance = std::sqrt(sum * d / static_cast<double>(s.samples.size()));
    absl::StrAppend(
        &grid, "<figure>\n<h3>", Escape(s.name), "</h3>\n",
        SampleScatter(absl::StrCat("Samples of ", s.name), s.teacher_samples, s.samples, d),
        "\n<figcaption>", ShortNumber(distance, 3),
        " from the teacher, root mean square of a sample</figcaption>\n</figure>\n");
  }
  if (grid.empty()) return "";
  return absl::StrCat(
      "<section>\n<h2>Samples</h2>\n<p>The same noise through the teacher (grey) and every "
      "student, in the data's units",
      d > 2 ? absl::StrCat(", over the first two of ", d, " dimensions") : "",
      ". Samples beyond the frame are not drawn.</p>\n<div class=\"grid\">\n", grid,
      "</div>\n</section>\n");
}

}  // namespace

absl::StatusOr<std::string> SampleSection(const ReportInput& input, const ReportFacts& facts) {
  if (facts.plan == nullptr) return "";
  const auto linear = [](const StrategyResult& s) { return s.linear; };
  if (!input.strategies.empty() &&
      std::none_of(input.strategies.begin(), input.strategies.end(), linear)) {
    return ScatterSection(input, facts.plan->dimensions());
  }
  MP_ASSIGN_OR_RETURN(const SampleGrid grid,
                      DrawSamples(input, *facts.plan, facts.tau_surrogate, facts.tau_teacher));
  std::string out = "<section>\n<h2>Samples</h2>\n";
  if (grid.kind == SampleKind::kNone) {
    absl::StrAppend(&out, "<p>", Escape(grid.explanation), "</p>\n");
  } else {
    absl::StrAppend(
        &out, "<p>The same noise (seed ", input.seed, ") through the teacher, the surrogate and ",
        "every student, turned back into data. ",
        input.strategies.empty() ? "" : "What the students multiply by is what they achieved. ",
        "The Gaussian teacher knows mean and covariance only, so nothing here is sharp: what "
        "counts "
        "is how much a row differs from the first two. Distances are root mean squares.</p>\n");
  }
  if (grid.kind == SampleKind::kLines) out += LineFigures(grid);
  if (grid.kind == SampleKind::kPictures) {
    for (const SampleRow& row : grid.rows) {
      out += StripHtml(row.label, row.detail, row.data_uri,
                       absl::StrCat(Count(grid.samples, "sample"), " of ", row.label));
    }
    absl::StrAppend(&out, "<p class=\"soft\">", Escape(grid.explanation), "</p>\n",
                    "<details>\n<summary>Differences from the surrogate, enlarged</summary>\n");
    for (const SampleRow& row : grid.rows) {
      if (row.difference_uri.empty()) continue;
      out += StripHtml(row.label, absl::StrCat("differences × ", ShortNumber(row.gain, 2)),
                       row.difference_uri,
                       absl::StrCat("Differences of ", Count(grid.samples, "sample"), " of ",
                                    row.label, " from the surrogate’s"));
    }
    out += "<p class=\"soft\">Middle grey: no difference.</p>\n</details>\n";
  }
  if (facts.plan->dimensions() <= kFewDimensions) out += ValueTable(input, facts);
  return absl::StrCat(out, "</section>\n");
}

}  // namespace mergeplan
