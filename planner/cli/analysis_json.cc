#include <cmath>

#include "planner/cli/analysis.h"
#include "planner/cli/sure.h"
#include "planner/spectrum/figures.h"
#include "planner/spectrum/shrinkage.h"

namespace mergeplan::cli {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity: a distance without limit is null.
Json Finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json BasisJson(const Basis& basis, double confidence, bool has_covariance) {
  const BasisFigures figures = FiguresOf(basis, confidence);
  Json distance = Json::array();
  for (const double z : figures.distance) distance.push_back(Finite(z));
  Json out = {
      {"regime", std::string(ToString(basis.regime))},
      {"fraction_above_one", basis.fraction_above_one},
      {"energy_above_one", figures.energy_above_one},
      {"undecided", figures.undecided},
      {"off_diagonal_energy", has_covariance ? Json(basis.off_diagonal_energy) : Json(nullptr)},
      {"effective_rank", figures.effective_rank},
      {"participation_ratio", figures.participation_ratio},
      {"effective_samples",
       {{"least", figures.effective_samples_least}, {"median", figures.effective_samples_median}}},
      {"interval", basis.interval},
      {"variances", basis.variances},
      {"variances_low", basis.variances_low},
      {"variances_high", basis.variances_high},
      {"standard_errors_from_one", std::move(distance)}};
  if (!basis.kurtosis.empty()) {
    out["skewness"] = basis.skewness;
    out["kurtosis"] = basis.kurtosis;
  }
  return out;
}

Json ChannelJson(const ChannelStatistics& c) {
  return {{"mean", c.mean},
          {"mean_error", Finite(c.mean_error)},
          {"std", c.deviation},
          {"std_error", Finite(c.deviation_error)},
          {"effective_values", Finite(c.effective)}};
}

Json ScalingJson(const ChannelReport& report) {
  return {{"scaling_factor", report.scaling_factor},
          {"scaling_factor_error", Finite(report.scaling_factor_error)},
          {"shift_factor", report.shift_factor},
          {"shift_factor_error", Finite(report.shift_factor_error)},
          {"scaling_factor_uncentred", report.scaling_factor_uncentred},
          {"errors", report.interval},
          {"all", ChannelJson(report.all)}};
}

Json GaussianityJson(const Gaussianity& g) {
  Json out = {{"verdict", g.verdict}, {"words", g.words},        {"rejected", g.rejected},
              {"level", g.level},     {"smallest_p_value", g.p}, {"rows", g.rows}};
  for (const AxisTests& axes : g.axes) {
    out["axes"][axes.basis] = {{"tested", axes.tested},
                               {"skewness_rejected", axes.skewness_rejected},
                               {"kurtosis_rejected", axes.kurtosis_rejected},
                               {"smallest_p_value", axes.smallest_p},
                               {"largest_skewness", axes.largest_skewness},
                               {"least_kurtosis", axes.least_kurtosis},
                               {"largest_kurtosis", axes.largest_kurtosis}};
  }
  out["mardia"] = {{"dimensions", g.mardia.dimensions},
                   {"skewness", g.mardia.skewness},
                   {"skewness_p_value", g.mardia.skewness_p},
                   {"kurtosis", g.mardia.kurtosis},
                   {"kurtosis_p_value", g.mardia.kurtosis_p}};
  const ModesReport& modes = g.modes;
  Json projections = Json::array();
  for (const Projection& p : modes.projections) {
    projections.push_back({{"kind", p.kind},
                           {"number", p.number},
                           {"skewness", p.skewness},
                           {"kurtosis", p.kurtosis},
                           {"dip", p.dip},
                           {"dip_p_value", p.dip_p}});
  }
  out["projections"] = {{"skewness_p_value", modes.skewness_p},
                        {"kurtosis_p_value", modes.kurtosis_p},
                        {"dip_p_value", modes.dip_p},
                        {"directions", std::move(projections)}};
  const MixtureEvidence& m = modes.mixture;
  out["mixture"] = {{"dimensions", m.dimensions},       {"components", m.components},
                    {"covariance", m.covariance},       {"bic_gain", m.bic_gain},
                    {"held_out_gain", m.held_out_gain}, {"groups", m.groups},
                    {"separation", m.separation},       {"share", m.share},
                    {"valley_p_value", m.valley_p}};
  out["several_modes_by"] = Json::array();
  if (modes.by_dip) out["several_modes_by"].push_back("dip");
  if (modes.by_mixture) out["several_modes_by"].push_back("mixture");
  return out;
}

void AddAdvice(const Advice& advice, const std::optional<Sensitivity>& sure, Json& out) {
  out["recommended_strategy"] = advice.strategy;
  out["reason"] = advice.reason;
  out["proven"] = advice.proven;
  out["network_advice"] = advice.network;
  if (sure) {
    out["how_sure"] = HowSure(*sure, advice.strategy);
    out["sensitivity"] = SensitivityJson(*sure);
  }
  out["lambda0"] = {advice.lambda0.least, advice.lambda0.largest};
  for (const StrategyFigures& row : advice.figures) {
    out["strategies"][row.name] = {{"objective", row.objective},
                                   {"objective_equal_total_time", *row.objective_equal_total_time},
                                   {"merges_trained", row.merges_trained}};
    if (!row.costs) continue;
    out["strategies"][row.name]["rounds"] = row.costs->rounds;
    out["strategies"][row.name]["teacher_calls"] = row.costs->teacher_calls;
    out["strategies"][row.name]["student_calls"] = row.costs->student_calls;
  }
  out["scalar_regimes"] = Json::array();
  for (VarianceRegime regime : advice.regimes) {
    out["scalar_regimes"].push_back(std::string(ToString(regime)));
  }
}

}  // namespace

Json AnalysisJson(const Analysis& analysis) {
  const Spectrum& spectrum = analysis.spectrum;
  Json out = {{"source", spectrum.source},   {"samples", spectrum.samples},
              {"skipped", spectrum.skipped}, {"dimensions", spectrum.dimensions()},
              {"shape", spectrum.shape},     {"scale", spectrum.scaling.text},
              {"mean", spectrum.mean},       {"variances", analysis.chosen->variances}};
  if (!analysis.incomplete.empty()) out["incomplete"] = analysis.incomplete;
  for (const Basis* b : spectrum.Bases()) {
    out["bases"][b->name] = BasisJson(*b, spectrum.confidence, spectrum.has_covariance());
  }
  if (spectrum.has_leading()) {
    const Basis& leading = spectrum.leading;
    out["leading"] = {
        {"share", spectrum.LeadingShare()},       {"variances", leading.variances},
        {"variances_low", leading.variances_low}, {"variances_high", leading.variances_high},
        {"errors", spectrum.leading_errors},      {"interval", leading.interval}};
    if (!leading.kurtosis.empty()) {
      out["leading"]["skewness"] = leading.skewness;
      out["leading"]["kurtosis"] = leading.kurtosis;
    }
  }
  out["basis"] = analysis.chosen->name;
  out["basis_reason"] = spectrum.recommended_basis_reason;
  out["confidence"] = spectrum.confidence;
  out["shrinkage"] = {{"rule", spectrum.shrinkage_rule}, {"intensity", spectrum.shrinkage}};
  if (spectrum.shrinkage_rule == "none" && spectrum.samples >= 2 && spectrum.has_covariance()) {
    out["shrinkage"]["oas_intensity"] = OasIntensity(spectrum);
  }
  if (analysis.channels) {
    const ChannelReport& report = *analysis.channels;
    out["scaling"] = ScalingJson(report);
    if (analysis.per_channel) {
      out["channels"] = Json::array();
      for (const ChannelStatistics& c : report.channels) {
        out["channels"].push_back(ChannelJson(c));
        out["latents_mean"].push_back(c.mean);
        out["latents_std"].push_back(c.deviation);
      }
    }
  }
  if (analysis.gaussianity) {
    out["multimodal"] = analysis.gaussianity->modes.multimodal();
    out["gaussianity"] = GaussianityJson(*analysis.gaussianity);
  }
  if (analysis.advice) AddAdvice(*analysis.advice, analysis.sure, out);
  if (!analysis.curve.empty()) out["scaling_curve"] = CurveJson(analysis.curve);
  out["seconds"] = analysis.seconds;
  return out;
}

}  // namespace mergeplan::cli
