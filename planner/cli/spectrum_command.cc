#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"
#include "planner/cli/analysis.h"
#include "planner/cli/command.h"
#include "planner/cli/flags.h"
#include "planner/cli/question.h"
#include "planner/spectrum/channels.h"
#include "planner/spectrum/merge.h"
#include "planner/spectrum/shrinkage.h"

namespace mergeplan::cli {
namespace {

struct MergeFlags {
  std::vector<std::string> parts;
  std::string output;
  std::string basis = "auto";
  double confidence = 0.95;
  std::string shrink = "none";
  int threads = 0;
  bool per_channel = false;
  bool json = false;
};

absl::Status RunMerge(const MergeFlags& flags) {
  MP_RETURN_IF_ERROR(CheckTomlOutput(flags.output, flags.parts));
  MP_RETURN_IF_ERROR(CheckBasisFlag(flags.basis));
  if (const absl::Status rule = CheckShrinkageRule(flags.shrink); !rule.ok()) {
    return Misuse(absl::InvalidArgumentError(absl::StrCat("--shrink: ", rule.message())));
  }
  if (flags.shrink == "ledoit-wolf") {
    return Misuse("--shrink: ledoit-wolf needs the data itself, expected none or oas");
  }
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Spectrum> parts;
  for (const std::string& path : flags.parts) {
    MP_ASSIGN_OR_RETURN(Spectrum part, ReadSpectrum(path));
    parts.push_back(std::move(part));
  }
  EstimateOptions options = OptionsForBasis(flags.basis);
  options.confidence = flags.confidence;
  options.shrinkage_rule = flags.shrink;
  options.threads = flags.threads;
  options.source = ReplaceInvalidUtf8(absl::StrJoin(flags.parts, " + "));
  Analysis analysis;
  EndOnInterrupt("spectrum merge", "stopped before it was done; wrote nothing");
  MP_ASSIGN_OR_RETURN(analysis.spectrum, MergeSpectra(parts, options));
  Spectrum& spectrum = analysis.spectrum;
  if (flags.basis != "auto" && flags.basis != spectrum.recommended_basis) {
    MP_RETURN_IF_ERROR(spectrum.FindBasis(flags.basis).status());
    spectrum.recommended_basis_reason = "asked for with --basis";
    spectrum.recommended_basis = flags.basis;
  }
  MP_ASSIGN_OR_RETURN(analysis.incomplete, MissingParts(spectrum.parts));
  MP_ASSIGN_OR_RETURN(analysis.chosen, spectrum.FindBasis(spectrum.recommended_basis));
  MP_ASSIGN_OR_RETURN(analysis.channels, DescribeChannels(spectrum));
  analysis.per_channel = flags.per_channel;
  const HoldInterrupts hold;
  if (!flags.output.empty()) MP_RETURN_IF_ERROR(WriteSpectrum(spectrum, flags.output));
  analysis.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  PrintAnalysis(analysis, flags.json, flags.output);
  return absl::OkStatus();
}

}  // namespace

Command MakeSpectrum(CLI::App& top) {
  auto flags = std::make_shared<MergeFlags>();
  CLI::App* group = top.add_subcommand("spectrum", "Work on spectra that analyze wrote");
  group->require_subcommand(1);
  CLI::App* app = group->add_subcommand(
      "merge", "One spectrum of all samples from those of disjoint parts, as one pass would give");
  app->footer("example: mergeplan spectrum merge part-1.toml part-2.toml -o all.toml");
  app->add_option("PART", flags->parts, "spectrum.toml of each part")->required();
  app->add_option("--basis", flags->basis, "auto (default), diagonal, dct or pca")
      ->type_name("BASIS");
  AddReal(*app, "--confidence", flags->confidence, Real::kInside,
          "of the intervals of the variances (default 0.95)")
      ->type_name("P");
  app->add_option("--shrink", flags->shrink, "none (default) or oas")->type_name("RULE");
  app->add_flag("--per-channel", flags->per_channel, "list the channels");
  AddInteger(*app, "--threads", flags->threads, 0, "threads to use (default, 0: all)")
      ->type_name("N");
  app->add_option("-o,--output", flags->output,
                  "spectrum file to write (.toml, with an .npz beside it)")
      ->type_name("FILE");
  app->add_flag("--json", flags->json, "print one JSON object");
  return {app, [flags] { return Report("spectrum merge", RunMerge(*flags)); }};
}

}  // namespace mergeplan::cli
