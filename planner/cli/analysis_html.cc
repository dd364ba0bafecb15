#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/cli/analysis.h"
#include "planner/cli/sure.h"
#include "planner/report/analysis_page.h"

namespace mergeplan::cli {
namespace {

std::string InBasis(const std::string& basis) {
  return basis == "pca" ? "principal axes" : basis == "dct" ? "cosine transform" : "own axes";
}

std::vector<TestRow> Tests(const Gaussianity& g) {
  std::vector<TestRow> out;
  for (const AxisTests& axes : g.axes) {
    if (axes.tested == 0) continue;
    out.push_back({"Skewness and kurtosis of every axis",
                   absl::StrFormat("%s: %d, of which %d and %d are rejected", InBasis(axes.basis),
                                   axes.tested, axes.skewness_rejected, axes.kurtosis_rejected),
                   std::nullopt, axes.smallest_p});
  }
  if (g.mardia.dimensions > 0) {
    const std::string of = absl::StrCat(g.mardia.dimensions, " leading directions");
    out.push_back({"Mardia’s skewness", of, g.mardia.skewness, g.mardia.skewness_p});
    out.push_back({"Mardia’s kurtosis", of, g.mardia.kurtosis, g.mardia.kurtosis_p});
  }
  const ModesReport& modes = g.modes;
  if (modes.projections.empty()) return out;
  const std::string of = absl::StrCat(modes.projections.size(), " projections of half the samples");
  out.push_back({"Skewness", of, std::nullopt, modes.skewness_p});
  out.push_back({"Kurtosis", of, std::nullopt, modes.kurtosis_p});
  out.push_back({"Dip test (one mode)", of,
                 modes.projections[static_cast<std::size_t>(modes.dip_at)].dip, modes.dip_p});
  if (modes.mixture.components > 1) {
    out.push_back(
        {"Dip test between components",
         absl::StrFormat("%d components in %d groups, %.2g deviations apart",
                         modes.mixture.components, modes.mixture.groups, modes.mixture.separation),
         std::nullopt, modes.mixture.valley_p});
  }
  return out;
}

}  // namespace

absl::StatusOr<std::string> AnalysisHtml(const Analysis& analysis, const std::string& command) {
  AnalysisPage page;
  page.spectrum = &analysis.spectrum;
  page.chosen = analysis.chosen;
  page.channels = analysis.channels ? &*analysis.channels : nullptr;
  page.command = command;
  if (analysis.gaussianity) {
    page.verdict = analysis.gaussianity->verdict;
    page.verdict_words = analysis.gaussianity->words;
    page.level = analysis.gaussianity->level;
    page.tests = Tests(*analysis.gaussianity);
  }
  if (analysis.advice) {
    page.strategy = analysis.advice->strategy;
    page.strategy_reason = analysis.advice->reason;
    page.network_advice = absl::StrCat("For networks: ", analysis.advice->network);
    if (analysis.sure) {
      page.how_sure = absl::StrCat("How sure: ", HowSure(*analysis.sure, page.strategy));
    }
  }
  for (const CurvePoint& point : analysis.curve) {
    page.curve.push_back({point.factor, point.mark, std::string(ToString(point.regime)),
                          point.fraction_above_one, point.energy_above_one, point.strategy,
                          point.objective, point.plan_objective});
  }
  return RenderAnalysis(page);
}

}  // namespace mergeplan::cli
