#include "adapters/command/bench.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "adapters/cases/cases.h"
#include "adapters/command/bench_budget.h"
#include "adapters/command/latent_data.h"
#include "adapters/judge/judge.h"
#include "planner/base/memory.h"
#include "planner/base/status_macros.h"
#include "planner/runs/run_info.h"
#include "plugins/host/services.h"

namespace mergeplan {
namespace {

bool IsPlanFile(const std::string& strategy) {
  return absl::EndsWith(strategy, ".toml") || absl::EndsWith(strategy, ".json");
}

// What a row is called: a file by its name without folder and ending, unless that is ambiguous.
std::string LabelOf(const std::string& strategy, const std::vector<std::string>& all) {
  const auto stem = [](const std::string& name) {
    return name.find('/') == std::string::npos ? name : std::filesystem::path(name).stem().string();
  };
  const std::string label = stem(strategy);
  const auto same = std::count_if(all.begin(), all.end(),
                                  [&](const std::string& other) { return stem(other) == label; });
  return same == 1 ? label : strategy;
}

absl::StatusOr<std::shared_ptr<const BenchCase>> CaseOf(const DistillArguments& arguments,
                                                        std::shared_ptr<MixtureFits> fits,
                                                        std::shared_ptr<judge::Judge> judge,
                                                        PlannerServices& services) {
  MP_ASSIGN_OR_RETURN(const TeacherName name, ParseTeacher(*arguments.teacher));
  if (HasNetworkStudents(arguments, name)) {
    return NetworkCase(arguments, std::move(judge), services);
  }
  MP_RETURN_IF_ERROR(CheckArguments(arguments));
  if (name.kind != kMixtureTeacher) return GaussianCase(arguments, std::move(judge), services);
  if (judge != nullptr && judge->compares()) {
    return Misuse(absl::StrCat("--judge: is of linear or network students, these are of ",
                               name.kind, ":", name.path, "; leave the option out"));
  }
  return MixtureCase(arguments, std::move(fits), services);
}

// One strategy of the list, ready to be run.
struct Entry {
  std::string name;                           // as it was asked for
  std::string label;                          // of the row
  std::shared_ptr<const BenchCase> prepared;  // null: `status` says why
  absl::Status status;
};

// A row of the result, before and after it has been trained.
struct PlannedRow {
  BenchRow row;
  std::shared_ptr<const BenchCase> prepared;  // null: row.error says why
  std::optional<std::size_t> same_as;         // an earlier row that is the same training
};

// A plan of as many merges as BOOT has is given the same under both budgets.
bool TotalIsPerMerge(const BenchCase& prepared) {
  const Plan& plan = prepared.document().plan;
  return plan.size() == plan.teacher_steps() - plan.student_steps();
}

// progressive:factor=4 -> the arguments of a run of it. A path may hold colons: only what follows a
// colon and has the form NAME=VALUE is a parameter.
DistillArguments ArgumentsFor(const BenchArguments& arguments, const std::string& strategy) {
  DistillArguments out = arguments.question;
  out.output = "bench";  // nothing is written
  std::vector<std::string> parts = absl::StrSplit(strategy, ':');
  while (parts.size() > 1 && absl::StrContains(parts.back(), '=')) {
    out.parameters.insert(out.parameters.begin(), parts.back());
    parts.pop_back();
  }
  const std::string name = absl::StrJoin(parts, ":");
  if (IsPlanFile(name)) {
    // What the plan fixes must be what is asked here (CheckAgainstPlan); of a mixture only its
    // merges count.
    out.plan = name;
  } else {
    out.strategy = name;
  }
  return out;
}

// The names that "all" stands for: what can plan without being told more.
std::vector<std::string> AllStrategies(const BenchArguments& arguments,
                                       std::vector<std::string>* left_out) {
  std::vector<std::string> out;
  for (const PluginListing& listing : ListPlugins(arguments.question.plugin_folders)) {
    if (!listing.status.ok()) {
      left_out->push_back(absl::StrCat(listing.name, ": ", std::string(listing.status.message())));
      continue;
    }
    const auto& parameters = listing.manifest->parameters;
    const auto needed = std::find_if(parameters.begin(), parameters.end(),
                                     [](const ParameterSpec& p) { return !p.default_value; });
    if (needed != parameters.end()) {
      left_out->push_back(absl::StrCat(listing.name, ": its parameter ", needed->name,
                                       " has no default; ask for ", listing.name, ":", needed->name,
                                       "=..."));
      continue;
    }
    out.push_back(listing.name);
  }
  return out;
}

// Is a plan file about the same question as the others? Its budget may differ only where it says
// so.
absl::Status CheckSameQuestion(const PlanDocument& a, const PlanDocument& b,
                               const std::string& name) {
  const auto differs = [&](const char* what) {
    return Misuse(absl::StrCat(name, ": was made for another ", what,
                               " than the other strategies are run with; plan again with the same "
                               "options, or leave it out"));
  };
  if (a.alpha != b.alpha || a.sigma != b.sigma) return differs("schedule");
  if (a.variances != b.variances) return differs("spectrum");
  if (a.budget.sgd != b.budget.sgd || a.budget.train_time != b.budget.train_time ||
      a.budget.lr != b.budget.lr || a.budget.iterations != b.budget.iterations ||
      a.budget.feature_norm != b.budget.feature_norm) {
    return differs("budget (rate, updates per merge, feature norm, or training time)");
  }
  if (a.init != b.init) return differs("start");
  if (a.reference != b.reference) return differs("reference");
  if (a.plan.student_steps() != b.plan.student_steps()) return differs("number of student steps");
  return absl::OkStatus();
}

absl::Status CheckBench(const BenchArguments& arguments) {
  const judge::JudgeOptions& judge = arguments.judge;
  if (judge.data.empty() && (!judge.features.empty() || !judge.array.empty())) {
    return Misuse(absl::StrCat(judge.features.empty() ? "--judge-array" : "--features",
                               ": is of --judge, which is missing; expected samples, or teacher"));
  }
  if (arguments.trials < 1) {
    return Misuse(absl::StrCat("--trials ", arguments.trials, ": expected 1 or more"));
  }
  std::set<std::string> seen;
  for (const std::string& name : arguments.strategies) {
    if (name.empty()) return Misuse("--strategies: holds an empty name, expected all or names");
    if (!seen.insert(name).second) {
      return Misuse(absl::StrCat("--strategies: ", name, " stands there twice"));
    }
  }
  if (!arguments.question.teacher) {
    return Misuse(
        "--teacher: missing, expected analytic:SPECTRUM.toml, mixture:MIXTURE.toml, "
        "script:MODEL.toml or unet:FOLDER");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BenchResult> RunBench(const BenchArguments& asked, const BenchWatch& watch) {
  MP_RETURN_IF_ERROR(CheckBench(asked));
  MP_ASSIGN_OR_RETURN(const BenchBudget budget, ParseBenchBudget(asked.budget));
  BenchArguments arguments = asked;
  if (budget.updates) {
    std::optional<std::int64_t>& iterations = arguments.question.iterations;
    if (iterations && *iterations != *budget.updates) {
      return Misuse(absl::StrCat("--budget ", asked.budget, ": updates=", *budget.updates,
                                 " and --iterations ", *iterations, " differ; give one of them"));
    }
    iterations = budget.updates;
  }
  std::shared_ptr<judge::Judge> judge;
  if (!arguments.judge.data.empty() || !arguments.judge.folder.empty()) {
    judge = std::make_shared<judge::Judge>(arguments.judge, DecoderOf(arguments.question));
  }
  LinearPlannerServices services([](LogLevel, std::string_view) {}, watch.stop);
  BenchForecast forecast;
  // "all" stands for what is not asked for by name.
  std::vector<std::string> names;
  std::set<std::string> by_all;
  for (const std::string& name : arguments.strategies) {
    if (name != "all") {
      names.push_back(name);
      continue;
    }
    for (const std::string& found : AllStrategies(arguments, &forecast.left_out)) {
      const auto& asked = arguments.strategies;
      if (std::find(asked.begin(), asked.end(), found) != asked.end()) continue;
      names.push_back(found);
      by_all.insert(found);
    }
  }

  // All plans are made before anything is trained: most mistakes show here.
  const std::shared_ptr<MixtureFits> fits = NoFits();
  absl::Status failure;
  std::vector<Entry> entries;
  for (const std::string& name : names) {
    const DistillArguments one = ArgumentsFor(arguments, name);
    absl::StatusOr<std::shared_ptr<const BenchCase>> prepared = CaseOf(one, fits, judge, services);
    if (watch.stop()) return absl::CancelledError("stopped before the training began");
    if (!prepared.ok() && IsMisuse(prepared.status())) {
      return Misuse(absl::StrReplaceAll(std::string(prepared.status().message()),
                                        {{"--strategy: ", "--strategies: "},
                                         {"--set: ", "--strategies: "},
                                         {"--set ", "--strategies: "}}));
    }
    if (!prepared.ok() && by_all.contains(name)) {
      forecast.left_out.emplace_back(prepared.status().message());
      if (failure.ok()) failure = prepared.status();
      continue;
    }
    entries.push_back(
        {name, LabelOf(name, names), prepared.ok() ? *prepared : nullptr, prepared.status()});
  }
  // The question is what strategies were asked; of plan files alone the first one's.
  const BenchCase* first = nullptr;
  for (const bool plan_files : {false, true}) {
    for (const Entry& entry : entries) {
      if (first == nullptr && entry.prepared != nullptr && IsPlanFile(entry.name) == plan_files) {
        first = entry.prepared.get();
      }
    }
  }
  for (const Entry& entry : entries) {
    if (entry.prepared == nullptr) continue;
    MP_RETURN_IF_ERROR(
        CheckSameQuestion(entry.prepared->document(), first->document(), entry.name));
  }
  if (first == nullptr) {
    if (!entries.empty()) return entries.front().status;
    return failure.ok() ? absl::NotFoundError("no strategy was found; see mergeplan plugins list")
                        : failure;
  }

  BenchResult result;
  result.reference = first->document().reference;
  result.teacher_steps = first->document().plan.teacher_steps();
  result.student_steps = first->document().plan.student_steps();
  result.dimensions = first->document().dimensions();
  result.batch = first->batch();
  result.trials = arguments.trials;
  result.init = std::string(ToString(first->document().init));
  result.teacher = *arguments.question.teacher;
  result.basis = first->basis();
  result.schedule = first->document().schedule_spec;

  MP_ASSIGN_OR_RETURN(const BenchSpeed speed, first->Probe());
  forecast.seconds = 0;
  std::vector<PlannedRow> rows;
  for (const bool total : {false, true}) {
    if (!(total ? budget.total : budget.per_merge)) continue;
    for (std::size_t k = 0; k < entries.size(); ++k) {
      const Entry& entry = entries[k];
      std::shared_ptr<const BenchCase> prepared = entry.prepared;
      std::optional<std::size_t> same_as;
      if (prepared != nullptr && total && budget.per_merge && TotalIsPerMerge(*prepared))
        same_as = k;
      if (prepared != nullptr && total) {
        MP_ASSIGN_OR_RETURN(prepared, prepared->WithTotalBudget());
      }
      BenchRow row;
      if (prepared != nullptr) row = prepared->Row();
      row.strategy = entry.label;
      row.total_budget = total;
      if (prepared == nullptr) row.error = std::string(entry.status.message());
      const int trials = prepared == nullptr || same_as ? 0 : arguments.trials;
      forecast.runs += trials;
      forecast.updates += row.updates * trials;
      forecast.teacher_calls += row.teacher_calls * trials;
      if (trials > 0) {
        const BenchNeeds needs = prepared->Needs(speed);
        forecast.seconds += needs.seconds * trials;
        forecast.snapshot_bytes = std::max(forecast.snapshot_bytes, needs.snapshot_bytes);
      }
      rows.push_back({std::move(row), std::move(prepared), same_as});
    }
  }
  if (first->shared_updates() > 0) {
    forecast.updates += first->shared_updates() * arguments.trials;
    forecast.teacher_calls += first->shared_updates() * first->batch() * arguments.trials;
  }
  forecast.above = AboveLimits(budget, forecast);
  watch.forecast(forecast);
  result.forecast = forecast;
  if (judge != nullptr) {
    result.judged = judge->About();
    result.features = judge->features_name();
    MP_ASSIGN_OR_RETURN(result.teacher_samples, first->JudgeTeacher(watch));
  }
  for (auto& [row, prepared, same_as] : rows) {
    if (same_as) {
      row = result.rows[*same_as];
      row.total_budget = true;
    } else if (prepared != nullptr) {
      const absl::Status status = prepared->Run(arguments.trials, watch, &row);
      if (absl::IsCancelled(status) && watch.stop()) {
        result.stopped = true;
        break;
      }
      if (!status.ok()) row.error = std::string(status.message());
    }
    result.rows.push_back(std::move(row));
  }
  result.training = first->training();
  result.peak_memory_bytes = PeakMemoryBytes();
  return result;
}

}  // namespace mergeplan
