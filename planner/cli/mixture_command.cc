#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/status_macros.h"
#include "planner/cli/command.h"
#include "planner/cli/flags.h"
#include "planner/cli/question.h"
#include "planner/data/samples.h"
#include "planner/mixture/fit.h"
#include "planner/mixture/mixture_io.h"
#include "planner/spectrum/reservoir.h"

namespace mergeplan::cli {
namespace {

struct FitFlags {
  DataFlags data;
  std::string components;  // empty: 1..8, as far as there are samples
  std::string covariance = "diagonal";
  int rank = 0;
  std::int64_t most_samples = 0;
  int restarts = 3;
  int iterations = 200;
  std::int64_t seed = 1;
  std::string output;
  bool json = false;
};

// "4", "1..8" or "1,2,4,8".
absl::StatusOr<std::vector<int>> ParseComponents(const std::string& text) {
  const auto wrong = [&] {
    return Misuse(absl::StrCat("--components: \"", text,
                               "\" is none of a number, a range such as 1..8, or a list such as "
                               "2,4,8 of numbers 1..",
                               kMaxMixtureComponents));
  };
  std::vector<int> out;
  const std::vector<std::string> ends = absl::StrSplit(text, absl::ByString(".."));
  if (ends.size() == 2) {
    int low = 0, high = 0;
    if (!absl::SimpleAtoi(ends[0], &low) || !absl::SimpleAtoi(ends[1], &high) || low < 1 ||
        high < low || high > kMaxMixtureComponents) {
      return wrong();
    }
    for (int k = low; k <= high; ++k) out.push_back(k);
    return out;
  }
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    int k = 0;
    if (!absl::SimpleAtoi(part, &k) || k < 1 || k > kMaxMixtureComponents) return wrong();
    out.push_back(k);
  }
  return out;
}

absl::StatusOr<std::vector<CovarianceKind>> ParseKinds(const std::string& text) {
  if (text == "auto") return std::vector{CovarianceKind::kDiagonal, CovarianceKind::kFull};
  for (const CovarianceKind kind :
       {CovarianceKind::kDiagonal, CovarianceKind::kLowRank, CovarianceKind::kFull}) {
    if (text == ToString(kind)) return std::vector{kind};
  }
  return Misuse(absl::StrCat("--covariance: unknown word \"", text,
                             "\", expected diagonal, low-rank, full or auto (diagonal or full, "
                             "whichever has the smaller BIC)"));
}

// All samples, or a random part of at most `most`, under the scaling: n x d.
struct Samples {
  std::vector<double> rows;
  int dimensions = 0;
  std::int64_t seen = 0, kept = 0, skipped = 0;
  Scaling scaling;
};

absl::StatusOr<Samples> ReadSamples(const FitFlags& flags) {
  Samples out;
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<SampleSource> source, OpenFromFlags(flags.data));
  if (source->dimensions() > kMaxMixtureDimensions) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.data.input, ": has samples of ", source->dimensions(),
                     " values, expected at most ", kMaxMixtureDimensions));
  }
  MP_ASSIGN_OR_RETURN(out.scaling, ScalingOf(flags.data, *source));
  out.dimensions = static_cast<int>(source->dimensions());
  const std::int64_t most =
      flags.most_samples > 0 ? flags.most_samples : 4 * ReservoirCapacity(out.dimensions);
  RowReservoir kept(out.dimensions, most, static_cast<std::uint64_t>(flags.seed));
  std::vector<double> buffer(static_cast<std::size_t>(out.dimensions) * 256);
  while (true) {
    MP_ASSIGN_OR_RETURN(const int count, source->Read(absl::MakeSpan(buffer)));
    if (count == 0) break;
    kept.Add(buffer, count);
  }
  out.seen = kept.seen();
  out.kept = kept.kept();
  out.skipped = source->skipped();
  out.rows = kept.TakeRows();
  for (double& value : out.rows) value = out.scaling.Apply(value);
  return out;
}

// The default stops short of one component for every sample; what was asked for is refused where
// there are too few samples for it, before anything is fitted.
absl::StatusOr<std::vector<int>> ComponentsFor(const FitFlags& flags, std::vector<int> components,
                                               const Samples& samples) {
  if (flags.components.empty()) {
    const std::int64_t most = std::max<std::int64_t>(1, samples.kept - 1);
    std::erase_if(components, [&](int k) { return k > most; });
    return components;
  }
  const int most = *std::max_element(components.begin(), components.end());
  if (most <= samples.kept) return components;
  return Misuse(absl::StrCat("--components: up to ", most, " are asked for, but there are ",
                             samples.kept, " samples to fit them to, expected at most ",
                             samples.kept));
}

// "0.5, 0.3, 0.2", the first ones where there are many.
std::string WeightsText(const std::vector<double>& weights) {
  constexpr std::size_t kMost = 12;
  const std::size_t shown = weights.size() > kMost ? kMost - 2 : weights.size();
  std::string out =
      absl::StrJoin(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(shown), ", ",
                    [](std::string* text, double w) { absl::StrAppend(text, absl::SixDigits(w)); });
  if (shown < weights.size()) {
    absl::StrAppend(&out, " and ", weights.size() - shown, " more down to ",
                    absl::SixDigits(weights.back()), " (--json lists them)");
  }
  return out;
}

// Components that are a single sample or so: what lies far out takes one for itself.
std::string LoneSamples(const MixtureSpec& spec, const Samples& samples) {
  const auto lone = std::count_if(spec.weights.begin(), spec.weights.end(), [&](double w) {
    return w * static_cast<double>(samples.kept) < 1.5;
  });
  if (lone == 0) return "";
  return absl::StrCat(lone, lone == 1 ? " component holds" : " components hold",
                      " a single sample: one far from all others, perhaps no part of the data, or "
                      "too many components for so few samples");
}

absl::Status RunFit(const FitFlags& flags) {
  if (flags.data.input.empty()) return Misuse("no INPUT: give a file or folder of samples");
  MP_RETURN_IF_ERROR(CheckTomlOutput(flags.output, {flags.data.input}));
  MP_ASSIGN_OR_RETURN(std::vector<int> components,
                      ParseComponents(flags.components.empty() ? "1..8" : flags.components));
  MP_ASSIGN_OR_RETURN(const std::vector<CovarianceKind> kinds, ParseKinds(flags.covariance));
  const bool low_rank = kinds.front() == CovarianceKind::kLowRank;
  if (low_rank != (flags.rank > 0)) {
    return Misuse(low_rank ? "--rank is missing: --covariance low-rank needs the number of factors"
                           : "--rank has no effect without --covariance low-rank; leave it out");
  }
  const auto begin = std::chrono::steady_clock::now();
  MP_ASSIGN_OR_RETURN(const Samples samples, ReadSamples(flags));
  MP_ASSIGN_OR_RETURN(components, ComponentsFor(flags, std::move(components), samples));
  MixtureFitOptions options;
  options.rank = flags.rank;
  options.restarts = flags.restarts;
  options.most_iterations = flags.iterations;
  options.seed = static_cast<std::uint64_t>(flags.seed);
  options.threads = flags.data.threads;
  CatchInterrupts();
  options.stop = [] { return Interrupted(); };
  const std::string name_of_data = NameOfInput(flags.data);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::optional<MixtureFit> best;
  const auto print_head = [&] {
    std::printf("%s: %lld of %lld samples of %d values", name_of_data.c_str(),
                static_cast<long long>(samples.kept), static_cast<long long>(samples.seen),
                samples.dimensions);
    if (samples.skipped > 0) {
      std::printf(", %lld left out because they are not finite",
                  static_cast<long long>(samples.skipped));
    }
    std::printf("\n\n%-10s %11s %10s %16s %16s\n", "covariance", "components", "parameters",
                "log-likelihood", "BIC");
  };
  for (const CovarianceKind kind : kinds) {
    for (const int k : components) {
      options.kind = kind;
      options.components = k;
      absl::StatusOr<MixtureFit> fit = FitMixture(samples.rows, samples.dimensions, options);
      if (absl::IsCancelled(fit.status()))
        return absl::CancelledError("stopped; nothing was written");
      if (!fit.ok()) {
        return absl::Status(fit.status().code(),
                            absl::StrCat(name_of_data, ": ", fit.status().message()));
      }
      if (!flags.json && rows.empty()) print_head();
      const std::string name(ToString(kind));
      rows.push_back({{"covariance", name},
                      {"components", fit->spec.components},
                      {"components_asked", k},
                      {"parameters", fit->parameters},
                      {"log_likelihood", fit->log_likelihood},
                      {"bic", fit->bic},
                      {"iterations", fit->iterations},
                      {"converged", fit->converged}});
      if (!flags.json) {
        std::printf("%-10s %11d %10lld %16.8g %16.8g%s\n", name.c_str(), fit->spec.components,
                    static_cast<long long>(fit->parameters), fit->log_likelihood, fit->bic,
                    fit->converged ? "" : "  not converged");
        std::fflush(stdout);
      }
      if (!best || fit->bic < best->bic) best = *std::move(fit);
    }
  }
  best->spec.name = name_of_data;
  const std::string lone = LoneSamples(best->spec, samples);
  MP_ASSIGN_OR_RETURN(const GaussianMixture mixture, GaussianMixture::Create(best->spec));
  if (!flags.output.empty()) MP_RETURN_IF_ERROR(WriteMixture(mixture, flags.output));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (flags.json) {
    const nlohmann::ordered_json out = {{"source", best->spec.name},
                                        {"samples", samples.seen},
                                        {"samples_used", samples.kept},
                                        {"skipped", samples.skipped},
                                        {"dimensions", samples.dimensions},
                                        {"scale", samples.scaling.text},
                                        {"components", best->spec.components},
                                        {"covariance", std::string(ToString(best->spec.kind))},
                                        {"bic", best->bic},
                                        {"weights", best->spec.weights},
                                        {"remark", lone},
                                        {"fits", rows},
                                        {"seconds", seconds}};
    std::printf("%s\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf("\nleast BIC: %d components, %s covariance, weights %s; %.1f s\n",
                best->spec.components, std::string(ToString(best->spec.kind)).c_str(),
                WeightsText(best->spec.weights).c_str(), seconds);
    if (!lone.empty()) std::printf("%s\n", lone.c_str());
    if (!flags.output.empty()) std::printf("written to %s\n", flags.output.c_str());
  }
  return absl::OkStatus();
}

}  // namespace

Command MakeMixture(CLI::App& top) {
  auto flags = std::make_shared<FitFlags>();
  CLI::App* group = top.add_subcommand("mixture", "Fit a Gaussian mixture to a data set");
  group->require_subcommand(1);
  CLI::App* app = group->add_subcommand(
      "fit", "Expectation-maximisation from k-means++ starts; the least BIC is kept");
  app->footer("example: mergeplan mixture fit latents.npy --components 1..8 -o mixture.toml");
  AddDataFlags(*app, flags->data);
  app->add_option("--components", flags->components,
                  "how many: a number, a range or a list, of which the least BIC is taken (default "
                  "1..8, and fewer than samples)")
      ->type_name("K");
  app->add_option("--covariance", flags->covariance,
                  "diagonal (default), low-rank, full, or auto: diagonal or full")
      ->type_name("KIND");
  AddInteger(*app, "--rank", flags->rank, 1, "factors of every component, with low-rank")
      ->type_name("R");
  AddInteger(*app, "--most-samples", flags->most_samples, 2,
             "fit to a random part of at most so many samples (default: as many as 2^25 numbers)")
      ->type_name("N");
  AddInteger(*app, "--restarts", flags->restarts, 1, "starts tried for every K (default 3)")
      ->type_name("R");
  AddInteger(*app, "--max-iterations", flags->iterations, 1, "of one start (default 200)")
      ->type_name("I");
  AddInteger(*app, "--seed", flags->seed, 0, "of starts and of the part (default 1)")
      ->type_name("SEED");
  app->add_option("-o,--output", flags->output,
                  "mixture file to write (.toml, with an .npz beside it)")
      ->type_name("FILE");
  app->add_flag("--json", flags->json, "print one JSON object");
  return {app, [flags] { return Report("mixture fit", RunFit(*flags)); }};
}

}  // namespace mergeplan::cli
