#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/cli/advice.h"
#include "planner/cli/analysis.h"
#include "planner/cli/command.h"
#include "planner/cli/flags.h"
#include "planner/cli/question.h"
#include "planner/cli/scaling_curve.h"
#include "planner/cli/shards.h"
#include "planner/cli/sure.h"
#include "planner/operators/canonical.h"
#include "planner/spectrum/channels.h"
#include "planner/spectrum/reservoir.h"
#include "planner/spectrum/shrinkage.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::cli {
namespace {

struct AnalyzeFlags {
  DataFlags data;
  TrainingFlags training;
  std::string basis = "auto";
  double confidence = 0.95;
  double off_diagonal = 0.01;
  bool per_channel = false;
  bool diagonal_only = false;
  int directions = 0;
  std::string shrink = "none";
  int bootstrap = 0;
  std::int64_t seed = 1;
  bool no_gaussianity = false;
  bool scaling_curve = false;
  std::string scaling_range;
  std::string shard;
  int shards = 0;
  std::string checkpoint;
  Ranks ranks;
  std::string output, report;
  bool json = false;
};

// One pass feeds moments, channel statistics and the samples kept for the tests of normality. No
// result on ranks that have only made parts.
absl::StatusOr<std::optional<Spectrum>> EstimateAndTest(const AnalyzeFlags& flags,
                                                        Analysis& analysis) {
  EstimateOptions options = OptionsForBasis(flags.basis);
  options.confidence = flags.confidence;
  options.off_diagonal_bound = flags.off_diagonal;
  options.shrinkage_rule = flags.shrink;
  options.bootstrap = flags.bootstrap;
  options.seed = static_cast<std::uint64_t>(flags.seed);
  options.want_covariance = !flags.diagonal_only;
  if (flags.diagonal_only) options.want_pca = options.want_dct = false;
  if (flags.directions > 0) {
    options.leading = flags.directions;
    options.want_leading = true;
  }
  if (flags.shards > 0) {
    MP_ASSIGN_OR_RETURN(
        std::optional<Spectrum> merged,
        EstimateInShards(flags.data, options, flags.shards, flags.checkpoint, flags.ranks));
    if (merged) {
      MP_ASSIGN_OR_RETURN(analysis.channels, DescribeChannels(*merged));
    }
    return merged;
  }
  if (flags.diagonal_only) {
    MP_ASSIGN_OR_RETURN(Spectrum spectrum, EstimateFromFlags(flags.data, options));
    MP_ASSIGN_OR_RETURN(analysis.channels, DescribeChannels(spectrum));
    return spectrum;
  }
  std::optional<ChannelAccumulator> channels;
  std::optional<RowReservoir> kept;
  options.begin = [&](const std::vector<std::int64_t>& shape, int dimensions) {
    channels.emplace(shape, flags.data.threads);
    if (!flags.no_gaussianity) {
      kept.emplace(dimensions, ReservoirCapacity(dimensions), options.seed);
    }
  };
  options.observe = [&](const Rows& batch, int count) {
    std::visit(
        [&](const auto rows) {
          channels->Add(rows, count);
          if (kept) kept->Add(rows, count);
        },
        batch);
  };
  MP_ASSIGN_OR_RETURN(Spectrum spectrum, EstimateFromFlags(flags.data, options));
  MP_ASSIGN_OR_RETURN(analysis.channels, DescribeChannels(spectrum));
  channels->Correct(spectrum, *analysis.channels);
  if (kept) {
    GaussianityOptions tests;
    tests.seed = options.seed;
    MP_ASSIGN_OR_RETURN(analysis.gaussianity, TestGaussianity(spectrum, kept->TakeRows(), tests));
  }
  return spectrum;
}

// The recommended strategy and how sure that is.
absl::Status AddAdvice(const AnalyzeFlags& flags, ModelSpec spec, Analysis& analysis) {
  spec.variances = analysis.chosen->variances;
  MP_RETURN_IF_ERROR(CheckSize(flags.training, spec));
  absl::StatusOr<Model> model = Model::Create(std::move(spec));
  if (!model.ok()) return Misuse(model.status());
  absl::StatusOr<Advice> given = Advise(*model, flags.training.student_steps);
  if (!given.ok()) return Misuse(given.status());
  analysis.advice = *std::move(given);
  MP_ASSIGN_OR_RETURN(const Strategy strategy, ParseStrategy(analysis.advice->strategy));
  MP_ASSIGN_OR_RETURN(const Plan plan,
                      CanonicalPlan(strategy, model->steps(), flags.training.student_steps));
  const Basis& chosen = *analysis.chosen;
  SearchOptions search;
  search.threads = flags.data.threads;
  analysis.sure = QuickSensitivity(
      *model,
      VarianceIntervals{chosen.variances_low, chosen.variances_high, analysis.spectrum.confidence},
      plan, analysis.advice->strategy, search);
  return absl::OkStatus();
}

absl::Status RunAnalyze(AnalyzeFlags flags) {
  if (flags.data.input.empty()) return Misuse("no INPUT: give a file or folder of samples");
  MP_RETURN_IF_ERROR(CheckEncoding(flags.data));
  MP_RETURN_IF_ERROR(CheckTomlOutput(flags.output, {flags.data.input}));
  MP_RETURN_IF_ERROR(CheckOutput(flags.report, {flags.data.input}));
  if (!flags.report.empty() && flags.report == flags.output) {
    return Misuse("--report and -o name one file, expected two");
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

  CurveOptions curve;
  if (!flags.scaling_range.empty()) {
    if (!flags.scaling_curve) {
      return Misuse("--scaling-range has no effect without --scaling-curve; leave it out");
    }
    MP_RETURN_IF_ERROR(ParseRange(flags.scaling_range, curve));
  }
  if (const absl::Status rule = CheckShrinkageRule(flags.shrink); !rule.ok()) {
    return Misuse(absl::InvalidArgumentError(absl::StrCat("--shrink: ", rule.message())));
  }
  if (flags.bootstrap == 1) return Misuse("--bootstrap: is 1, expected 0 or at least 2 replicates");

  if (flags.diagonal_only) {
    if (flags.basis != "auto" && flags.basis != "diagonal") {
      return Misuse(absl::StrCat("--basis: ", flags.basis,
                                 " needs the covariance, which --diagonal-only leaves out"));
    }
    if (flags.shrink != "none" || flags.bootstrap > 0) {
      return Misuse(
          "--shrink and --bootstrap need the covariance, which --diagonal-only leaves out");
    }
  }
  if (!flags.shard.empty()) MP_RETURN_IF_ERROR(ParseShard(flags.shard, flags.data));
  flags.ranks = RanksOfEnvironment();
  if (flags.ranks.size > 1) {
    if (flags.checkpoint.empty()) {
      return Misuse(
          absl::StrCat("mpirun has started ", flags.ranks.size,
                       " processes for one analysis, which needs a folder for their parts "
                       "that all of them see: give --checkpoint FOLDER"));
    }
    if (flags.shards == 0) flags.shards = flags.ranks.size;
  }
  if (flags.data.encoding.asked() && (flags.shards > 0 || !flags.checkpoint.empty())) {
    return Misuse(
        "--checkpoint: beside --vae the latents are not kept, so that there is nothing to go on "
        "with; expected mergeplan encode, which goes on where it was, and analyze of its folder");
  }
  if (!flags.checkpoint.empty() != (flags.shards > 0)) {
    return Misuse("--checkpoint and --shards belong together: a folder, and how many parts");
  }
  if (flags.shards > 0) {
    if (!flags.shard.empty()) return Misuse("--shard and --shards exclude each other");
    if (flags.shrink == "ledoit-wolf" || flags.bootstrap > 0) {
      return Misuse(
          "--bootstrap and --shrink ledoit-wolf need a second pass over all data, which "
          "--checkpoint saves; leave one of them out");
    }
  }

  if (flags.directions > 0 && flags.basis == "pca") {
    return Misuse(
        "--directions: gives leading directions in the place of all that --basis pca "
        "asks for; leave one of them out");
  }
  if (flags.directions > 0 && flags.diagonal_only && flags.shards > 0) {
    return Misuse(
        "--directions: needs the covariance of the parts, which --diagonal-only leaves "
        "out; leave one of them out");
  }

  flags.data.hash = !flags.output.empty();
  if (!flags.diagonal_only) flags.data.most_dimensions = kMaxDimensions;
  const auto begin = std::chrono::steady_clock::now();
  Analysis analysis;
  // Nothing is lost where it ends half-way: files are written at the end. Parts say it themselves.
  if (flags.shards == 0) EndOnInterrupt("analyze", "stopped before it was done; wrote nothing");
  MP_ASSIGN_OR_RETURN(std::optional<Spectrum> found, EstimateAndTest(flags, analysis));
  if (!found) return absl::OkStatus();
  analysis.spectrum = *std::move(found);
  Spectrum& spectrum = analysis.spectrum;
  if (flags.basis != "auto" && flags.basis != spectrum.recommended_basis) {
    spectrum.recommended_basis_reason = "asked for with --basis";
    spectrum.recommended_basis = flags.basis;
  }
  if (flags.basis == "dct" && !spectrum.has_dct()) {
    return Misuse(
        absl::StrCat("--basis: dct needs samples with spatial axes, of shape [H, W], "
                     "[C, H, W] or [T, C, H, W]; these have the shape [",
                     absl::StrJoin(spectrum.shape, ", "), "]"));
  }
  MP_ASSIGN_OR_RETURN(const Basis* chosen, spectrum.FindBasis(spectrum.recommended_basis));
  analysis.chosen = chosen;
  analysis.per_channel = flags.per_channel;
  curve.unit_variance = analysis.channels ? analysis.channels->scaling_factor : 0;
  curve.student_steps = flags.training.student_steps;
  if (flags.scaling_curve) {
    MP_ASSIGN_OR_RETURN(analysis.curve, ScalingCurve(*chosen, advise ? &spec : nullptr, curve));
  }
  if (advise) MP_RETURN_IF_ERROR(AddAdvice(flags, std::move(spec), analysis));
  const HoldInterrupts hold;
  if (!flags.output.empty()) MP_RETURN_IF_ERROR(WriteSpectrum(spectrum, flags.output));
  analysis.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!flags.report.empty()) {
    MP_ASSIGN_OR_RETURN(const std::string page, AnalysisHtml(analysis, CommandLine()));
    MP_RETURN_IF_ERROR(WriteFileAtomically(flags.report, page));
  }
  PrintAnalysis(analysis, flags.json, flags.output);
  if (!flags.report.empty() && !flags.json) {
    std::printf("%sreport in %s\n", flags.output.empty() ? "\n" : "", flags.report.c_str());
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
      "cosine --train-time 1.6\n"
      "         mergeplan analyze images/ --vae pipeline/vae --size 128 --per-channel");
  AddDataFlags(*app, flags->data);
  AddEncodingFlags(*app, flags->data.encoding);
  app->add_option("--basis", flags->basis,
                  "auto (default: the cheapest that leaves little energy off the diagonal), "
                  "diagonal, dct (over the spatial axes) or pca")
      ->type_name("BASIS");
  AddReal(*app, "--off-diagonal", flags->off_diagonal, Real::kShare,
          "share of the covariance's energy off the diagonal up to which auto takes a basis "
          "(default 0.01)")
      ->type_name("SHARE");
  app->add_flag("--per-channel", flags->per_channel,
                "list mean and standard deviation of every channel (latents_mean, latents_std)");
  app->add_option("--shrink", flags->shrink,
                  "shrink the covariance of few samples: none (default), oas or ledoit-wolf")
      ->type_name("RULE");
  AddInteger(*app, "--bootstrap", flags->bootstrap, 0,
             "make the intervals from that many bootstrap replicates (default 0: from fourth "
             "moments)",
             100'000)
      ->type_name("B");
  AddInteger(*app, "--seed", flags->seed, 0, "of bootstrap and tests (default 1)")
      ->type_name("SEED");
  app->add_flag("--diagonal-only", flags->diagonal_only,
                "means and variances along the data's own axes only, as fast as the file can be "
                "read and of any number of dimensions: no covariance, other bases or tests");
  AddInteger(*app, "--directions", flags->directions, 1,
             "that many leading principal directions in the place of all (default 128 where there "
             "are more than 4,096 dimensions, unless --basis says otherwise); with "
             "--diagonal-only by up to 40 passes over the data",
             4096)
      ->type_name("K");
  app->add_flag("--no-gaussianity", flags->no_gaussianity,
                "leave out the tests of normality and for several modes");
  app->add_flag("--scaling-curve", flags->scaling_curve,
                "how regime and recommendation change where the data is multiplied by a factor");
  app->add_option("--scaling-range", flags->scaling_range, "of those factors (default 0.125:8)")
      ->type_name("LOW:HIGH");
  AddReal(*app, "--confidence", flags->confidence, Real::kInside,
          "of the intervals of the variances (default 0.95)")
      ->type_name("P");
  AddTrainingFlags(*app, flags->training, false);
  app->add_option("--shard", flags->shard,
                  "analyze part I of N only; spectrum merge joins what they write")
      ->type_name("I/N");
  AddInteger(*app, "--shards", flags->shards, 1,
             "with --checkpoint: in so many parts (default under mpirun: one for each process)",
             1'000'000)
      ->type_name("N");
  app->add_option(
         "--checkpoint", flags->checkpoint,
         "folder for the spectra of the parts: a run that was killed does not read finished "
         "ones again (without the tests of normality, which need all data at once)")
      ->type_name("FOLDER");
  app->add_option("-o,--output", flags->output,
                  "spectrum file to write (.toml, with an .npz beside it)")
      ->type_name("FILE");
  app->add_option(
         "--report", flags->report,
         "HTML page to write: verdict, tests, channels, variances, covariance, and the curve "
         "of --scaling-curve")
      ->type_name("FILE");
  app->add_flag("--json", flags->json, "print one JSON object");
  return {app, [flags] { return Report("analyze", RunAnalyze(*flags)); }};
}

}  // namespace mergeplan::cli
