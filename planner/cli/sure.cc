#include "planner/cli/sure.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace mergeplan::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kDistribution[] =
    "each variance by itself log-normal around its estimate, with the ends of its interval as the "
    "quantiles of its confidence; directions of the basis held fixed";

std::string Percent(const Share& share) {
  return absl::StrFormat("%.3g %% (%.3g to %.3g)", 100 * share.share(), 100 * share.low(),
                         100 * share.high());
}

// "plan = boot = draws 3, 5".
std::string Names(const Sensitivity::Candidate& candidate) {
  std::string out, draws;
  int count = 0;
  for (const std::string& name : candidate.names) {
    if (name.starts_with("draw ")) {
      absl::StrAppend(&draws, draws.empty() ? "" : ", ", name.substr(5));
      ++count;
    } else {
      absl::StrAppend(&out, out.empty() ? "" : " = ", name);
    }
  }
  if (count > 0)
    absl::StrAppend(&out, out.empty() ? "" : " = ", count > 1 ? "draws " : "draw ", draws);
  return out;
}

Json ToJson(const Share& share) {
  return {{"share", share.share()}, {"low", share.low()}, {"high", share.high()}};
}

}  // namespace

std::optional<Sensitivity> QuickSensitivity(const Model& model,
                                            const std::optional<VarianceIntervals>& intervals,
                                            const Plan& plan, const std::string& name,
                                            const SearchOptions& search) {
  if (!intervals || !model.has_schedule()) return std::nullopt;
  constexpr double kEntries = 1e7;  // of tables made; some tenths of a second
  constexpr int kFewest = 20;
  SensitivityOptions options;
  const double fit = kEntries / (static_cast<double>(model.steps()) * model.dimensions());
  if (fit < kFewest) return std::nullopt;
  options.draws = std::min(options.draws, static_cast<int>(std::min(fit, 1e6)));
  options.replans = 0;
  options.search.threads = search.threads;
  options.search.max_merges = search.max_merges;
  options.search.max_rounds = search.max_rounds;
  absl::StatusOr<Sensitivity> out = AnalyzeSensitivity(model, *intervals, plan, name, options);
  if (!out.ok() || out->draws < kFewest) return std::nullopt;
  return *std::move(out);
}

std::string HowSure(const Sensitivity& s, const std::string& what) {
  if (s.draws == 0) {
    return s.refused > 0
               ? "cannot be said: the learning rate is too large for every draw of the variances"
               : "cannot be said: it was stopped before the first draw of the variances";
  }
  const std::string strategies = absl::StrJoin(s.not_allowed, ", ");
  if (s.not_beaten.of == 0 && !s.not_allowed.empty()) {
    return absl::StrCat("there is no other strategy within the limits on merges and rounds that ",
                        what, " could be compared with (not allowed: ", strategies, ")");
  }
  if (s.not_beaten.of == 0) {
    return absl::StrCat("whatever the variances, every strategy makes the same plan as ", what);
  }
  std::string out = absl::StrFormat(
      "no other strategy beats %s in %.3g %% of %d draws of the variances within their intervals "
      "(%.3g to %.3g %% by the number of draws)",
      what, 100 * s.not_beaten.share(), s.draws, 100 * s.not_beaten.low(),
      100 * s.not_beaten.high());
  absl::StrAppendFormat(&out,
                        "; its lead is %.3g %% in the median, %.3g to %.3g %% in nine draws of ten",
                        100 * s.lead.median, 100 * s.lead.p5, 100 * s.lead.p95);
  if (!s.not_allowed.empty()) {
    absl::StrAppend(&out, " (not compared with, as the limits on merges and rounds exclude them: ",
                    strategies, ")");
  }
  return out;
}

std::string SensitivityText(const Sensitivity& s) {
  std::string out = absl::StrFormat("sensitivity  %s\n", HowSure(s, "the plan"));
  absl::StrAppendFormat(&out, "%s (%.3g %%)\n", kDistribution, 100 * s.confidence);
  if (s.draws == 0) return out;
  absl::StrAppendFormat(&out, "\n%-24s %14s %26s %26s\n", "candidate", "objective",
                        "best of all, % of draws", "best of the four, %");
  for (const Sensitivity::Candidate& c : s.candidates) {
    absl::StrAppendFormat(&out, "%-24s %14.6e %26s %26s\n", Names(c), c.objective, Percent(c.best),
                          c.best_strategy.of > 0 ? Percent(c.best_strategy) : "");
  }
  if (s.replans > 0) {
    absl::StrAppendFormat(
        &out,
        "\nplanning anew for a draw gains %.3g %% in the median of %d and %.3g %% at most; no "
        "planning could gain more than %.3g %%\n",
        100 * s.regret_median, s.replans, 100 * s.regret_largest, 100 * s.regret_bound);
  }
  if (s.refused > 0) {
    absl::StrAppendFormat(&out,
                          "%d of the %d draws have variances that the learning rate is too large "
                          "for and are left out\n",
                          s.refused, s.asked);
  }
  if (s.draws + s.refused < s.asked) {
    absl::StrAppendFormat(&out, "stopped early: %d of the %d draws were left out\n",
                          s.asked - s.draws - s.refused, s.asked);
  }
  return out;
}

Json SensitivityJson(const Sensitivity& s) {
  Json out = {{"draws", s.draws},           {"draws_asked", s.asked},
              {"draws_refused", s.refused}, {"seed", s.seed},
              {"confidence", s.confidence}, {"distribution", kDistribution},
              {"not_beaten", nullptr},      {"lead", nullptr}};
  if (s.not_beaten.of > 0) {
    out["not_beaten"] = ToJson(s.not_beaten);
    out["lead"] = {{"p5", s.lead.p5}, {"median", s.lead.median}, {"p95", s.lead.p95}};
  }
  out["strategies_not_allowed"] = s.not_allowed;
  out["best_strategy"] = Json::object();
  out["candidates"] = Json::array();
  for (const Sensitivity::Candidate& c : s.candidates) {
    Json one = {{"names", c.names}, {"objective", c.objective}, {"best", ToJson(c.best)}};
    one["plan"] = c.plan.ToString();
    out["candidates"].push_back(std::move(one));
    if (!c.canonical) continue;
    for (const std::string& name : c.names) {
      if (name != "plan" && !name.starts_with("draw "))
        out["best_strategy"][name] = ToJson(c.best_strategy);
    }
  }
  out["replans"] = s.replans;
  if (s.replans > 0) {
    out["regret"] = {{"median", s.regret_median},
                     {"largest", s.regret_largest},
                     {"largest_possible", s.regret_bound}};
  }
  return out;
}

}  // namespace mergeplan::cli
