#include "planner/cli/plan_shared.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/cli/answer.h"
#include "planner/cli/command.h"
#include "planner/cli/progress.h"
#include "planner/search/shared_time.h"

namespace mergeplan::cli {
namespace {

using Json = nlohmann::ordered_json;

Json RangeJson(const Range& range) { return Json::array({range.first, range.last}); }

Json ResultJson(const Question& question, const SearchOptions& options,
                const SharedTimeResult& result) {
  const Model& model = question.model;
  const bool sgd = model.budget().sgd;
  Json out = {{"teacher_steps", model.steps()},
              {"student_steps", options.student_steps},
              {"dimensions", model.dimensions()},
              {"schedule", model.schedule().spec},
              {"init", std::string(ToString(model.init()))},
              {"reference", std::string(ToString(model.spec().reference))},
              {"space", std::string(ToString(options.space))}};
  if (sgd) {
    out["total_updates"] = model.budget().iterations;
  } else {
    out["total_time"] = result.total;
  }
  out.update({{"objective", result.objective},
              {"lower_bound", result.lower_bound},
              {"gap", result.gap()},
              {"status", std::string(ToString(result.status))},
              {"guarantee", result.guarantee},
              {"vanilla_objective", result.vanilla_objective},
              {"equal_shares_objective", result.equal_shares_objective},
              {"merges_trained", result.plan.size() - result.untrained},
              {"untrained", result.untrained},
              {"convex", result.allocation.convex},
              {"stationarity", result.allocation.stationarity}});
  out["merges"] = Json::array();
  for (int k = 0; k < result.plan.size(); ++k) {
    const Merge& merge = result.plan.merges()[k];
    Json children = Json::array();
    for (const int child : merge.children) children.push_back(RangeJson(result.plan.range(child)));
    Json row = {{"first", merge.first},
                {"last", merge.last},
                {"round", merge.round},
                {"children", std::move(children)},
                {"share", result.allocation.shares[k]}};
    if (sgd) {
      row["updates"] = result.allocation.updates[k];
    } else {
      row["time"] = result.allocation.shares[k] * result.total;
    }
    out["merges"].push_back(std::move(row));
  }
  out["blocks"] = Json::array();
  for (const Range& range : result.plan.BlockRanges()) out["blocks"].push_back(RangeJson(range));
  out["plan"] = result.plan.ToString();
  out["seconds"] = result.seconds;
  return out;
}

void PrintShared(const Question& question, const SharedTimeResult& result) {
  const bool sgd = question.model.budget().sgd;
  PrintAssumptions(question);
  std::printf(
      "shared       the training above is one total that all merges share, not that of each\n");
  std::printf("plan         %s\n", result.plan.ToString().c_str());
  std::printf("objective    %.12e\n", result.objective);
  std::printf("lower bound  %.12e, gap %.3g, status %s, %.2f s\n", result.lower_bound, result.gap(),
              std::string(ToString(result.status)).c_str(), result.seconds);
  std::printf("%s\n\n", result.guarantee.c_str());
  std::printf("%-44s %.6e\n", "vanilla with the whole total", result.vanilla_objective);
  std::printf("%-44s %.6e\n\n", "this plan, the same for every merge",
              result.equal_shares_objective);
  // The merges with the largest shares; the others come to the rest.
  constexpr std::size_t kShown = 20;
  std::vector<int> order;
  for (int k = 0; k < result.plan.size(); ++k) order.push_back(k);
  const std::vector<double>& shares = result.allocation.shares;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return shares[a] > shares[b]; });
  std::printf("%-12s %8s  %s\n", "merge", "share", sgd ? "updates" : "time");
  for (std::size_t k = 0; k < std::min(kShown, order.size()); ++k) {
    const Merge& merge = result.plan.merges()[order[k]];
    std::printf("%-12s %7.2f%%  %s\n", absl::StrCat(merge.first, "..", merge.last).c_str(),
                100 * shares[order[k]],
                sgd ? absl::StrCat(result.allocation.updates[order[k]]).c_str()
                    : absl::StrFormat("%.4g", shares[order[k]] * result.total).c_str());
  }
  if (order.size() > kShown) std::printf("and %d more\n", static_cast<int>(order.size() - kShown));
}

}  // namespace

absl::Status CheckSharedFlags(const SharedFlags& flags) {
  if (flags.output.empty() || absl::EndsWith(flags.output, ".json")) return absl::OkStatus();
  return Misuse(absl::StrCat("--output: is \"", flags.output,
                             "\", expected a .json file: plan files say the same training for "
                             "every merge, which --shared does not give"));
}

absl::StatusOr<int> RunPlanShared(const Question& question, SearchOptions options,
                                  const SharedFlags& flags) {
  if (!question.model.has_schedule()) {
    return Misuse("--shared: tables do not say how shrinkage depends on training; leave it out");
  }
  const Budget& budget = question.model.budget();
  const double total = budget.sgd ? static_cast<double>(budget.iterations) : budget.train_time;
  ProgressLine progress(!flags.json && !flags.quiet);
  options.progress = progress.Callback();
  options.interrupted = [&progress] {
    progress.Tick();
    return Interrupted();
  };
  CatchInterrupts();
  const absl::StatusOr<SharedTimeResult> result = SolveSharedTime(question.model, total, options);
  progress.Clear();
  if (!result.ok()) return Misuse(result.status());
  const std::string json =
      ResultJson(question, options, *result).dump(2, ' ', false, Json::error_handler_t::replace);
  if (!flags.output.empty())
    MP_RETURN_IF_ERROR(WriteFileAtomically(flags.output, absl::StrCat(json, "\n")));
  PrintNotes(question.model);
  if (flags.json) {
    std::printf("%s\n", json.c_str());
  } else {
    PrintShared(question, *result);
    if (!flags.output.empty()) std::printf("\nwritten to %s\n", flags.output.c_str());
  }
  const bool stopped = result->status == SharedTimeStatus::kTimeLimit ||
                       result->status == SharedTimeStatus::kInterrupted;
  const bool short_of_gap = result->status == SharedTimeStatus::kBestKnown;
  return stopped || short_of_gap ? kStopped : kDone;
}

}  // namespace mergeplan::cli
