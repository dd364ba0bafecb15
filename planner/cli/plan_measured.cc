#include "planner/cli/plan_measured.h"

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/flags.h"
#include "planner/measured/lead.h"
#include "planner/measured/model.h"
#include "planner/measured/solve.h"

namespace mergeplan::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kLargestTree = 128;  // steps; as in plan files
constexpr int kMostDraws = 1'000'000;

constexpr const char* kOwn[] = {"--updates",    "--total-updates", "--combine", "--max-children",
                                "--max-merges", "--draws",         "--seed"};
constexpr const char* kShared[] = {"--measured", "--student-steps", "--output", "--json", "--help"};

bool Contains(std::initializer_list<std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Everything that was asked.
struct MeasuredQuestion {
  MeasuredModel model;
  MeasuredOptions options;
  std::string sha256;
};

absl::StatusOr<MeasuredQuestion> Ask(const MeasuredFlags& flags, int student_steps) {
  for (const CLI::Option* option : flags.app->get_options()) {
    if (option->count() == 0) continue;
    const auto is = [option](const char* name) { return option->check_name(name); };
    if (std::any_of(std::begin(kOwn), std::end(kOwn), is)) continue;
    if (std::any_of(std::begin(kShared), std::end(kShared), is)) continue;
    return Misuse(absl::StrCat(option->get_name(),
                               ": is for the linear model and has no effect with --measured, "
                               "whose tables say what was measured; leave it out"));
  }
  if ((flags.updates == 0) == (flags.total_updates == 0)) {
    return Misuse(flags.updates == 0
                      ? "no budget: give --updates K for every merge, or --total-updates U for "
                        "all merges together"
                      : "--updates and --total-updates are both given; give one of them");
  }
  MeasuredOptions options;
  if (!flags.combine.empty()) {
    const absl::StatusOr<Combine> combine = ParseCombine(flags.combine);
    if (!combine.ok()) return Misuse(absl::StrCat("--", std::string(combine.status().message())));
    options.combine = *combine;
  }
  MP_ASSIGN_OR_RETURN(MeasuredTables tables, ReadMeasured(flags.file));
  MP_ASSIGN_OR_RETURN(std::string sha256, Sha256OfFile(flags.file));
  if (flags.combine.empty()) options.combine = tables.combine;
  options.student_steps = student_steps;
  options.updates = flags.updates;
  options.total_updates = flags.total_updates;
  options.max_children = flags.max_children;
  options.max_merges = flags.max_merges;
  if (student_steps > tables.teacher_steps) {
    return Misuse(absl::StrCat("--student-steps: is ", student_steps, ", expected 1..",
                               tables.teacher_steps, ", the steps of the teacher"));
  }
  MP_ASSIGN_OR_RETURN(MeasuredModel model, MeasuredModel::Create(std::move(tables)));
  return MeasuredQuestion{std::move(model), options, std::move(sha256)};
}

Json Pair(Range range) { return Json::array({range.first, range.last}); }

// As deep as the plan, at most kLargestTree.
Json Tree(const Plan& plan, int node) {
  Json out = Pair(plan.range(node));
  if (plan.is_step(node)) return out;
  Json children = Json::array();
  for (const int child : plan.merges()[node - plan.teacher_steps()].children) {
    children.push_back(Tree(plan, child));
  }
  out.push_back(std::move(children));
  return out;
}

Json Heading(const MeasuredFlags& flags, const MeasuredQuestion& question) {
  const MeasuredOptions& o = question.options;
  Json out = Json::object();
  out["model"] = "measured";
  out["input"] = ReplaceInvalidUtf8(flags.file);
  out["input_sha256"] = question.sha256;
  out["source"] = question.model.tables().source;
  out["teacher_steps"] = question.model.steps();
  out["student_steps"] = o.student_steps;
  out["combine"] = std::string(ToString(o.combine));
  if (o.updates > 0) out["updates"] = o.updates;
  if (o.total_updates > 0) out["total_updates"] = o.total_updates;
  if (o.max_children > 0) out["max_children"] = o.max_children;
  if (o.max_merges > 0) out["max_merges"] = o.max_merges;
  return out;
}

// Objective and interval of one strategy; `lead`: how it stands to the plan.
Json Figures(const Rival& rival, const Lead* lead) {
  Json out = Json::object();
  out["merges_trained"] = rival.plan.size();
  out["affordable"] = rival.affordable;
  if (!rival.affordable) return out;
  out["objective"] = rival.error.value;
  out["objective_low"] = rival.error.low;
  out["objective_high"] = rival.error.high;
  if (lead == nullptr) return out;
  out["allowed"] = rival.allowed;
  out["is_the_plan"] = rival.is_the_plan;
  out["lead_certain"] = rival.certain;
  if (lead->options.draws > 0) {
    out["plan_better"] = rival.better;
    out["plan_equal"] = rival.equal;
  }
  return out;
}

Json Answer(Json out, const MeasuredResult& result, const Lead& lead) {
  out["objective"] = result.error;
  out["objective_low"] = lead.error.low;
  out["objective_high"] = lead.error.high;
  out["lower_bound"] = result.lower_bound;
  out["gap"] = result.gap();
  out["status"] = result.status();
  out["guarantee"] = result.guarantee;
  out["merges_trained"] = result.plan.size();
  out["strategies"] = Json::object();
  for (const Rival& rival : lead.rivals) out["strategies"][rival.name] = Figures(rival, &lead);
  out["draws"] = lead.options.draws;
  if (lead.options.draws > 0) {
    out["seed"] = lead.options.seed;
    out["plan_not_beaten"] = lead.best_of_all;
  }
  const Plan& plan = result.plan;
  out["blocks"] = Json::array();
  for (const Range& block : plan.BlockRanges()) out["blocks"].push_back(Pair(block));
  out["merges"] = Json::array();
  for (int k = 0; k < plan.size(); ++k) {
    const Merge& merge = plan.merges()[k];
    Json children = Json::array();
    for (const int child : merge.children) children.push_back(Pair(plan.range(child)));
    out["merges"].push_back({{"first", merge.first},
                             {"last", merge.last},
                             {"round", merge.round},
                             {"updates", result.updates[k]},
                             {"children", std::move(children)}});
  }
  if (plan.teacher_steps() <= kLargestTree) {
    out["tree"] = Json::array();
    for (const int block : plan.blocks()) out["tree"].push_back(Tree(plan, block));
  }
  out["seconds"] = result.seconds;
  return out;
}

void PrintAssumptions(const MeasuredQuestion& question) {
  const MeasuredOptions& o = question.options;
  std::printf("measured model, %d teacher steps, errors add up as %s, ", question.model.steps(),
              o.combine == Combine::kSum ? "they are (sum)" : "squares (rms)");
  if (o.updates > 0) {
    std::printf("%lld updates per merge\n", static_cast<long long>(o.updates));
  } else {
    std::printf("%lld updates shared by all merges\n", static_cast<long long>(o.total_updates));
  }
}

std::string TableRow(const std::string& name, const ErrorRange& error, int merges,
                     const std::string& lead) {
  return absl::StrFormat("%-14s %12.6g %12.6g %12.6g %8d  %s\n", name, error.value, error.low,
                         error.high, merges, lead);
}

// What the plan is, beside a strategy.
std::string Standing(const Rival& rival, const Lead& lead) {
  if (rival.is_the_plan) return "the same";
  std::string words = rival.certain ? "better for certain" : "";
  if (words.empty() && lead.options.draws > 0) {
    words = absl::StrFormat("better in %.1f %% of draws", 100 * rival.better);
  } else if (words.empty()) {
    words = rival.error.value > lead.error.value   ? "better at the values, not for certain"
            : rival.error.value < lead.error.value ? "worse"
                                                   : "as good";
  }
  return rival.allowed ? words : words + " (the strategy breaks the limits)";
}

std::string Table(const std::vector<Rival>& rivals, const Lead* lead) {
  std::string out = absl::StrFormat("%-14s %12s %12s %12s %8s%s\n", "strategy", "error", "low",
                                    "high", "merges", lead != nullptr ? "  the plan is" : "");
  for (const Rival& rival : rivals) {
    if (!rival.affordable) {
      absl::StrAppendFormat(&out, "%-14s %12s %12s %12s %8d  more merges than updates\n",
                            rival.name, "-", "-", "-", rival.plan.size());
      continue;
    }
    out += TableRow(rival.name, rival.error, rival.plan.size(),
                    lead != nullptr ? Standing(rival, *lead) : "");
  }
  return out;
}

void PrintAnswer(const MeasuredQuestion& question, const MeasuredResult& result, const Lead& lead) {
  PrintAssumptions(question);
  std::printf("plan         %s\n", result.plan.ToString().c_str());
  std::printf("error        %.9g, between %.6g and %.6g by the measured intervals\n", result.error,
              lead.error.low, lead.error.high);
  std::printf("lower bound  %.9g, gap %.3g, status %s, %.2f s\n", result.lower_bound, result.gap(),
              result.status().c_str(), result.seconds);
  std::printf("%s\n\n", result.guarantee.c_str());
  std::printf("%s%s", Table(lead.rivals, &lead).c_str(),
              TableRow("plan", lead.error, result.plan.size(), "").c_str());
  if (lead.options.draws > 0) {
    const bool all = std::all_of(lead.rivals.begin(), lead.rivals.end(),
                                 [](const Rival& rival) { return rival.allowed; });
    std::printf(
        "in %.1f %% of %d draws within the intervals (seed %llu) no strategy%s beats the plan\n",
        100 * lead.best_of_all, lead.options.draws,
        static_cast<unsigned long long>(lead.options.seed), all ? "" : " within the limits");
  }
  if (question.options.total_updates == 0 || result.plan.size() == 0) return;
  std::printf("\n%-14s %14s\n", "merge", "updates");
  for (int k = 0; k < result.plan.size(); ++k) {
    const Merge& merge = result.plan.merges()[k];
    std::printf("%-14s %14lld\n", absl::StrFormat("[%d, %d]", merge.first, merge.last).c_str(),
                static_cast<long long>(result.updates[k]));
  }
}

}  // namespace

void AddMeasuredFlags(CLI::App& app, MeasuredFlags& flags, bool plans) {
  flags.app = &app;
  app.get_option("--schedule")->required(false);  // CheckLinearFlags asks for it
  app.add_option("--measured", flags.file,
                 "ask the measured model, given by this file's tables, in place of the linear one")
      ->type_name("FILE");
  AddInteger(app, "--updates", flags.updates, 1, "with --measured: updates of every merge",
             kMostUpdates)
      ->type_name("K");
  AddInteger(app, "--total-updates", flags.total_updates, 1,
             "with --measured: updates that all merges share, in place of --updates", kMostUpdates)
      ->type_name("U");
  app.add_option("--combine", flags.combine,
                 "with --measured: how errors add up, sum or rms (default: what the file says)")
      ->type_name("RULE");
  if (!plans) return;
  AddInteger(app, "--max-children", flags.max_children, 2,
             "with --measured: children that a merge may have (default: any number)")
      ->type_name("K");
  AddInteger(app, "--max-merges", flags.max_merges, 1,
             "merges that the plan may have (default: any number)")
      ->type_name("M");
  AddInteger(app, "--draws", flags.draws, 0,
             "with --measured: random draws within the intervals (default 1000; 0: none); with "
             "--sensitivity: of the variances (default 200)",
             kMostDraws)
      ->type_name("D");
  AddInteger(app, "--seed", flags.seed, 0,
             "seed of the draws, with --measured and --sensitivity (default 1)")
      ->type_name("SEED");
}

absl::Status CheckLinearFlags(const MeasuredFlags& flags) {
  for (const char* name : kOwn) {
    // Those that the linear model has a use for as well.
    if (Contains({"--max-merges", "--draws", "--seed"}, name)) continue;
    MP_RETURN_IF_ERROR(RefuseGiven(flags.app, {name}, "without --measured"));
  }
  if (Given(flags.app, "--schedule") || Given(flags.app, "--tables")) return absl::OkStatus();
  return Misuse("--schedule is required, unless --tables or --measured is given");
}

absl::StatusOr<int> RunPlanMeasured(const MeasuredFlags& flags, int student_steps, bool json,
                                    const std::string& output) {
  if (!output.empty() && !absl::EndsWith(output, ".json")) {
    return Misuse(absl::StrCat(
        "-o ", output,
        ": a plan file states schedule and variances, which measured tables do not have; name a "
        "file that ends in .json for the answer as --json prints it"));
  }
  MP_RETURN_IF_ERROR(CheckOutput(output, {flags.file}));
  MP_ASSIGN_OR_RETURN(const MeasuredQuestion question, Ask(flags, student_steps));
  absl::StatusOr<MeasuredResult> result = SolveMeasured(question.model, question.options);
  if (!result.ok()) {
    return absl::IsInvalidArgument(result.status()) ? Misuse(result.status()) : result.status();
  }
  const LeadOptions draws{flags.draws, static_cast<std::uint64_t>(flags.seed)};
  MP_ASSIGN_OR_RETURN(const Lead lead, LeadOver(question.model, question.options, *result, draws));
  const std::string text =
      json || !output.empty() ? Answer(Heading(flags, question), *result, lead).dump(2) : "";
  if (!output.empty()) MP_RETURN_IF_ERROR(WriteFileAtomically(output, text + "\n"));
  if (!question.model.start_matters() && flags.max_children == 0 &&
      student_steps < question.model.steps()) {
    std::fprintf(stderr,
                 "note: no distance in %s depends on the start of its merge; whatever the numbers, "
                 "each block is then best made by one merge, as vanilla does\n",
                 flags.file.c_str());
  }
  if (json) {
    std::printf("%s\n", text.c_str());
  } else {
    PrintAnswer(question, *result, lead);
    if (!output.empty()) std::printf("\nwritten to %s\n", output.c_str());
  }
  return kDone;
}

absl::StatusOr<int> RunCompareMeasured(const MeasuredFlags& flags, int student_steps, bool json) {
  MP_ASSIGN_OR_RETURN(const MeasuredQuestion question, Ask(flags, student_steps));
  const absl::StatusOr<std::vector<Rival>> rivals = StrategiesOf(question.model, question.options);
  if (!rivals.ok()) return Misuse(rivals.status());
  if (json) {
    Json out = Heading(flags, question);
    out["strategies"] = Json::object();
    for (const Rival& rival : *rivals) out["strategies"][rival.name] = Figures(rival, nullptr);
    std::printf("%s\n", out.dump(2).c_str());
  } else {
    PrintAssumptions(question);
    std::printf("\n%s", Table(*rivals, nullptr).c_str());
  }
  return kDone;
}

}  // namespace mergeplan::cli
