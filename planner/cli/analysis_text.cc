#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/cli/analysis.h"
#include "planner/cli/answer.h"
#include "planner/cli/sure.h"
#include "planner/spectrum/figures.h"
#include "planner/spectrum/shrinkage.h"

namespace mergeplan::cli {
namespace {

// "1 dimension", "2 dimensions".
std::string Counted(std::int64_t count, const std::string& what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// A value with the digits that its error leaves it, five at least: 1000003.4 +- 0.1.
std::string WithError(double value, double error) {
  if (std::isnan(error)) return absl::StrFormat("%.5g", value);
  int digits = 5;
  if (error > 0 && std::isfinite(value / error)) {
    const double known = std::log10(std::max(1.0, std::abs(value) / error));
    digits = std::clamp(static_cast<int>(std::ceil(known)) + 1, 5, 17);
  }
  return absl::StrFormat("%.*g +- %.2g", digits, value, error);
}

std::string BasesText(const Spectrum& spectrum) {
  std::string out =
      absl::StrFormat("%-9s %-7s %12s %12s %12s %12s %10s %14s\n", "basis", "regime", "above 1",
                      "undecided", "largest", "smallest", "eff. rank", "off-diagonal");
  for (const Basis* b : spectrum.Bases()) {
    const auto [low, high] = std::minmax_element(b->variances.begin(), b->variances.end());
    const BasisFigures figures = FiguresOf(*b, spectrum.confidence);
    absl::StrAppendFormat(
        &out, "%-9s %-7s %5d = %4.1f%% %12d %12.4g %12.4g %10.4g %13.1f%%\n", b->name,
        std::string(ToString(b->regime)),
        static_cast<int>(std::lround(b->fraction_above_one * spectrum.dimensions())),
        100 * b->fraction_above_one, figures.undecided, *high, *low, figures.effective_rank,
        100 * b->off_diagonal_energy);
    if (spectrum.has_covariance()) continue;
    out.resize(out.rfind(' '));  // not known
    out += "-\n";
  }
  return out;
}

// The leading directions: how much they carry, and how sure that is.
std::string LeadingText(const Spectrum& spectrum) {
  if (!spectrum.has_leading()) return "";
  const std::vector<double>& variances = spectrum.leading.variances;
  double worst = 0;
  for (std::size_t i = 0; i < variances.size(); ++i) {
    // Below that a variance is rounding of the largest (leading.h), and so is its error.
    if (variances[i] <= 1e-12 * variances.front()) continue;
    worst = std::max(worst, spectrum.leading_errors[i] / variances[i]);
  }
  const auto above =
      std::count_if(variances.begin(), variances.end(), [](double v) { return v > 1; });
  if (variances.size() == 1) {
    return absl::StrFormat(
        "\n1 leading principal direction carries %.4g %% of the variance; its variance is %.5g, "
        "and an eigenvalue lies within %.2g %% of it\n",
        100 * spectrum.LeadingShare(), variances.front(), 100 * worst);
  }
  std::string out = absl::StrFormat(
      "\n%d leading principal directions carry %.4g %% of the variance; their variances are %.5g "
      "to %.5g, and eigenvalues lie within %.2g %% of each\n",
      static_cast<int>(variances.size()), 100 * spectrum.LeadingShare(), variances.front(),
      variances.back(), 100 * worst);
  const bool all = static_cast<std::size_t>(above) < variances.size();
  absl::StrAppendFormat(&out, "%s%d of the %d principal directions are above 1\n",
                        all ? "" : "at least ", static_cast<int>(above), spectrum.dimensions());
  return out;
}

std::string ScalingText(const ChannelReport& report, bool per_channel) {
  std::string out = absl::StrFormat(
      "\nto unit variance: (x - shift_factor) * scaling_factor with shift_factor %s and "
      "scaling_factor %s\n",
      WithError(report.shift_factor, report.shift_factor_error),
      WithError(report.scaling_factor, report.scaling_factor_error));
  if (report.scaling_factor == 0) out = "\nthe data has no variance, so none can be scaled to 1\n";
  if (!per_channel) return out;
  absl::StrAppendFormat(&out, "%-8s %24s %24s %18s\n", "channel", "latents_mean", "latents_std",
                        "worth values");
  for (std::size_t c = 0; c < report.channels.size(); ++c) {
    const ChannelStatistics& s = report.channels[c];
    absl::StrAppendFormat(&out, "%-8d %24s %24s %18s\n", static_cast<int>(c),
                          WithError(s.mean, s.mean_error),
                          WithError(s.deviation, s.deviation_error),
                          std::isnan(s.effective) ? "-" : absl::StrFormat("%.6g", s.effective));
  }
  return out;
}

// Few samples for the dimensions: what to do about it.
std::string FewSamples(const Spectrum& spectrum) {
  if (spectrum.shrinkage_rule != "none") {
    return absl::StrFormat("\nshrunk by %s: %.3g of the way to equal variances\n",
                           spectrum.shrinkage_rule, spectrum.shrinkage);
  }
  const double ratio = static_cast<double>(spectrum.dimensions()) / spectrum.samples;
  const std::vector<double>& variances = spectrum.diagonal.variances;
  const bool flat =
      std::all_of(variances.begin(), variances.end(), [](double v) { return v == 0; });
  if (!(spectrum.has_pca() || spectrum.has_leading()) || !spectrum.has_covariance() ||
      ratio <= kFewSamples || flat)
    return "";
  return absl::StrFormat(
      "\n%d samples are few for %s: the variances along principal directions spread more "
      "than the true ones do; --shrink oas would pull them %.3g of the way to their mean\n",
      spectrum.samples, Counted(spectrum.dimensions(), "dimension"), OasIntensity(spectrum));
}

}  // namespace

std::string AnalysisText(const Analysis& analysis) {
  const Spectrum& spectrum = analysis.spectrum;
  std::string out =
      absl::StrFormat("%s: %d samples of %s value%s", spectrum.source, spectrum.samples,
                      absl::StrJoin(spectrum.shape, " x "), spectrum.dimensions() == 1 ? "" : "s");
  if (spectrum.skipped > 0) {
    absl::StrAppendFormat(&out, ", %d left out because they are not finite", spectrum.skipped);
  }
  absl::StrAppendFormat(&out, "; pixel scale %s; %.1f s\n\n", spectrum.scaling.text,
                        analysis.seconds);
  if (!analysis.incomplete.empty()) {
    absl::StrAppend(&out, "incomplete: this is ", analysis.incomplete, "\n\n");
  }
  absl::StrAppend(&out, BasesText(spectrum), LeadingText(spectrum), FewSamples(spectrum));
  if (analysis.channels) out += ScalingText(*analysis.channels, analysis.per_channel);
  if (analysis.gaussianity) absl::StrAppend(&out, "\n", analysis.gaussianity->words, "\n");
  absl::StrAppendFormat(&out, "\nbasis %s: %s\n", analysis.chosen->name,
                        spectrum.recommended_basis_reason);
  if (analysis.advice) {
    const Advice& advice = *analysis.advice;
    absl::StrAppendFormat(&out, "strategy %s: %s\n", advice.strategy, advice.reason);
    if (analysis.sure) {
      absl::StrAppendFormat(&out, "how sure: %s\n", HowSure(*analysis.sure, advice.strategy));
    } else {
      absl::StrAppend(&out, kNotLookedAt, "\n");
    }
    absl::StrAppendFormat(&out, "for networks: %s\n\n%s", advice.network,
                          FiguresTable(advice.figures));
  }
  if (!analysis.curve.empty()) absl::StrAppend(&out, "\n", CurveText(analysis.curve));
  return out;
}

void PrintAnalysis(const Analysis& analysis, bool json, const std::string& written_to) {
  if (json) {
    std::printf("%s\n", AnalysisJson(analysis)
                            .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
                            .c_str());
    return;
  }
  std::fputs(AnalysisText(analysis).c_str(), stdout);
  if (!written_to.empty()) std::printf("\nwritten to %s\n", written_to.c_str());
}

}  // namespace mergeplan::cli
