#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/base/status_macros.h"
#include "planner/cli/advice.h"
#include "planner/cli/answer.h"
#include "planner/cli/command.h"
#include "planner/cli/flags.h"
#include "planner/cli/question.h"
#include "planner/cli/sure.h"
#include "planner/operators/canonical.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::cli {
namespace {

struct AnalyzeFlags {
  DataFlags data;
  TrainingFlags training;
  std::string basis = "auto";
  double confidence = 0.95;
  std::string output;
  bool json = false;
};

std::vector<const Basis*> Bases(const Spectrum& spectrum) {
  std::vector<const Basis*> out{&spectrum.diagonal};
  if (!spectrum.pca.variances.empty()) out.push_back(&spectrum.pca);
  return out;
}

nlohmann::ordered_json ToJson(const Spectrum& spectrum, const Basis& basis, const Advice* advice,
                              const std::optional<Sensitivity>& sure, double seconds) {
  nlohmann::ordered_json out = {
      {"source", spectrum.source},   {"samples", spectrum.samples},
      {"skipped", spectrum.skipped}, {"dimensions", spectrum.dimensions()},
      {"shape", spectrum.shape},     {"scale", spectrum.scaling.text},
      {"mean", spectrum.mean},       {"variances", basis.variances}};
  for (const Basis* b : Bases(spectrum)) {
    out["bases"][b->name] = {{"regime", std::string(ToString(b->regime))},
                             {"fraction_above_one", b->fraction_above_one},
                             {"off_diagonal_energy", b->off_diagonal_energy},
                             {"variances", b->variances},
                             {"variances_low", b->variances_low},
                             {"variances_high", b->variances_high}};
  }
  out["basis"] = basis.name;
  out["basis_reason"] = spectrum.recommended_basis_reason;
  if (advice != nullptr) {
    out["recommended_strategy"] = advice->strategy;
    out["reason"] = advice->reason;
    out["proven"] = advice->proven;
    out["network_advice"] = advice->network;
    if (sure) {
      out["how_sure"] = HowSure(*sure, advice->strategy);
      out["sensitivity"] = SensitivityJson(*sure);
    }
    out["lambda0"] = {advice->lambda0.least, advice->lambda0.largest};
    for (const StrategyFigures& row : advice->figures) {
      out["strategies"][row.name] = {
          {"objective", row.objective},
          {"objective_equal_total_time", *row.objective_equal_total_time},
          {"merges_trained", row.merges_trained}};
      if (!row.costs) continue;
      out["strategies"][row.name]["rounds"] = row.costs->rounds;
      out["strategies"][row.name]["teacher_calls"] = row.costs->teacher_calls;
      out["strategies"][row.name]["student_calls"] = row.costs->student_calls;
    }
    out["scalar_regimes"] = nlohmann::ordered_json::array();
    for (VarianceRegime regime : advice->regimes)
      out["scalar_regimes"].push_back(std::string(ToString(regime)));
  }
  out["seconds"] = seconds;
  return out;
}

void PrintText(const Spectrum& spectrum, const Basis& chosen, const Advice* advice,
               const std::optional<Sensitivity>& sure, double seconds) {
  std::printf("%s: %d samples of %s values", spectrum.source.c_str(),
              static_cast<int>(spectrum.samples), absl::StrJoin(spectrum.shape, " x ").c_str());
  if (spectrum.skipped > 0)
    std::printf(", %d left out because they are not finite", static_cast<int>(spectrum.skipped));
  std::printf("; pixel scale %s; %.1f s\n\n", spectrum.scaling.text.c_str(), seconds);
  std::printf("%-9s %-7s %12s %12s %12s %14s\n", "basis", "regime", "above 1", "largest",
              "smallest", "off-diagonal");
  for (const Basis* b : Bases(spectrum)) {
    const auto [low, high] = std::minmax_element(b->variances.begin(), b->variances.end());
    std::printf("%-9s %-7s %5d = %4.1f%% %12.4g %12.4g %13.1f%%\n", b->name.c_str(),
                std::string(ToString(b->regime)).c_str(),
                static_cast<int>(std::lround(b->fraction_above_one * spectrum.dimensions())),
                100 * b->fraction_above_one, *high, *low, 100 * b->off_diagonal_energy);
  }
  std::printf("\nbasis %s: %s\n", chosen.name.c_str(), spectrum.recommended_basis_reason.c_str());
  if (advice != nullptr) {
    std::printf("strategy %s: %s\n", advice->strategy.c_str(), advice->reason.c_str());
    if (sure) std::printf("how sure: %s\n", HowSure(*sure, advice->strategy).c_str());
    if (!sure) std::printf("%s\n", kNotLookedAt);
    std::printf("for networks: %s\n\n%s", advice->network.c_str(),
                FiguresTable(advice->figures).c_str());
  }
}

absl::Status RunAnalyze(const AnalyzeFlags& flags) {
  if (flags.data.input.empty()) return Misuse("no INPUT: give a file or folder of samples");
  MP_RETURN_IF_ERROR(CheckOutput(flags.output, {flags.data.input}, OutputKind::kWithArrays));
  if (!flags.output.empty()) {
    if (!absl::EndsWith(flags.output, ".toml")) {  // by which plan and distill know it
      return Misuse(absl::StrCat("-o ", flags.output,
                                 ": a spectrum is a TOML file, expected a name that ends in .toml; "
                                 "for JSON there is --json, on stdout"));
    }
    const std::string arrays = SpectrumArraysPath(flags.output);
    MP_RETURN_IF_ERROR(CheckOutput(arrays, {flags.data.input}, OutputKind::kArrays));
    std::error_code ec;
    if (std::filesystem::exists(arrays, ec) && !std::filesystem::exists(flags.output, ec)) {
      return Misuse(
          absl::StrCat("-o ", flags.output, ": its arrays would overwrite ", arrays,
                       ", which is there without it, so perhaps something else; remove that "
                       "file or give another name"));
    }
  }
  MP_RETURN_IF_ERROR(CheckBasisFlag(flags.basis));
  // Flags first: a wrong one should not cost a pass over the data.
  const bool advise = !flags.training.schedule.empty();
  ModelSpec spec;
  if (advise) {
    MP_ASSIGN_OR_RETURN(spec.schedule, ScheduleOf(flags.training));
    MP_ASSIGN_OR_RETURN(spec.budget, BudgetOf(flags.training));
    MP_RETURN_IF_ERROR(ParseTerms(flags.training, &spec.init, &spec.reference));
    MP_RETURN_IF_ERROR(CheckSize(flags.training, spec));
  } else {
    MP_RETURN_IF_ERROR(RefuseGiven(
        flags.training.app,
        {"--teacher-steps", "--train-time", "--lr", "--iterations", "--batch", "--feature-norm",
         "--init", "--reference", "--student-steps"},
        "without --schedule: advice on a strategy needs --schedule, --teacher-steps and a budget"));
  }

  const auto begin = std::chrono::steady_clock::now();
  MP_ASSIGN_OR_RETURN(Spectrum spectrum,
                      EstimateFromFlags(flags.data, flags.confidence, flags.basis != "diagonal"));
  if (flags.basis != "auto" && flags.basis != spectrum.recommended_basis) {
    spectrum.recommended_basis = flags.basis;
    spectrum.recommended_basis_reason = "asked for with --basis";
  }
  MP_ASSIGN_OR_RETURN(const Basis* chosen, spectrum.FindBasis(spectrum.recommended_basis));
  std::optional<Advice> advice;
  std::optional<Sensitivity> sure;
  if (advise) {
    spec.variances = chosen->variances;
    MP_RETURN_IF_ERROR(CheckSize(flags.training, spec));
    absl::StatusOr<Model> model = Model::Create(std::move(spec));
    if (!model.ok()) return Misuse(model.status());
    absl::StatusOr<Advice> given = Advise(*model, flags.training.student_steps);
    if (!given.ok()) return Misuse(given.status());
    advice = *std::move(given);
    MP_ASSIGN_OR_RETURN(const Strategy strategy, ParseStrategy(advice->strategy));
    MP_ASSIGN_OR_RETURN(const Plan plan,
                        CanonicalPlan(strategy, model->steps(), flags.training.student_steps));
    sure = QuickSensitivity(
        *model,
        VarianceIntervals{chosen->variances_low, chosen->variances_high, spectrum.confidence}, plan,
        advice->strategy, flags.data.threads);
  }
  if (!flags.output.empty()) MP_RETURN_IF_ERROR(WriteSpectrum(spectrum, flags.output));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const Advice* shown = advice ? &*advice : nullptr;
  if (flags.json) {
    std::printf("%s\n", ToJson(spectrum, *chosen, shown, sure, seconds)
                            .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
                            .c_str());
  } else {
    PrintText(spectrum, *chosen, shown, sure, seconds);
    if (!flags.output.empty()) std::printf("\nwritten to %s\n", flags.output.c_str());
  }
  return absl::OkStatus();
}

}  // namespace

Command MakeAnalyze(CLI::App& top) {
  auto flags = std::make_shared<AnalyzeFlags>();
  CLI::App* app = top.add_subcommand(
      "analyze", "Estimate the variances of a data set and say which regime it is in");
  app->footer(
      "example: mergeplan analyze train-images-idx3-ubyte.gz -o spectrum.toml -T 32 --schedule "
      "cosine --train-time 1.6");
  AddDataFlags(*app, flags->data);
  app->add_option("--basis", flags->basis, "auto (default), diagonal or pca")->type_name("BASIS");
  AddReal(*app, "--confidence", flags->confidence, Real::kInside,
          "of the intervals of the variances (default 0.95)")
      ->type_name("P");
  AddTrainingFlags(*app, flags->training, false);
  app->add_option("-o,--output", flags->output,
                  "spectrum file to write (.toml, with an .npz beside it)")
      ->type_name("FILE");
  app->add_flag("--json", flags->json, "print one JSON object");
  return {app, [flags] { return Report("analyze", RunAnalyze(*flags)); }};
}

}  // namespace mergeplan::cli
