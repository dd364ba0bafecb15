#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/answer/solved.h"
#include "planner/base/status_macros.h"
#include "planner/choice/fewer_blocks.h"
#include "planner/cli/answer.h"
#include "planner/cli/command.h"
#include "planner/cli/flags.h"
#include "planner/cli/plan_choices.h"
#include "planner/cli/plan_measured.h"
#include "planner/cli/plan_shared.h"
#include "planner/cli/progress.h"
#include "planner/cli/question.h"
#include "planner/cli/sure.h"
#include "planner/plan/io/document.h"
#include "planner/search/search.h"

namespace mergeplan::cli {
namespace {

struct PlanFlags {
  const CLI::App* app = nullptr;
  QuestionFlags question;
  MeasuredFlags measured;  // --max-merges, --draws and --seed are of the linear model too
  std::string space = "nary";
  int max_rounds = 0;
  double gap = 1e-3;
  double time_limit = 30;
  std::string device = "auto";
  bool shared = false;
  bool sensitivity = false;
  double relative_error = 0;
  std::string output;
  bool json = false;
  bool quiet = false;
};

absl::StatusOr<SearchDevice> ParseDevice(const std::string& word) {
  if (word == "auto") return SearchDevice::kAuto;
  if (word == "cpu") return SearchDevice::kCpu;
  if (word == "cuda") return SearchDevice::kCuda;
  return Misuse(absl::StrCat("--device: unknown word \"", word, "\", expected auto, cpu or cuda"));
}

// What of the flags stands by itself.
absl::StatusOr<SearchOptions> OptionsOf(const PlanFlags& flags) {
  SearchOptions options;
  absl::StatusOr<Space> space = ParseSpace(flags.space);
  if (!space.ok()) return Misuse(absl::StrCat("--", std::string(space.status().message())));
  options.space = *space;
  MP_ASSIGN_OR_RETURN(options.device, ParseDevice(flags.device));
  options.student_steps = flags.question.training.student_steps;
  options.max_merges = flags.measured.max_merges;
  options.max_rounds = flags.max_rounds;
  options.gap = flags.gap;
  options.time_limit_seconds = flags.time_limit;
  options.threads = flags.question.data.threads;
  options.interrupted = Interrupted;
  return options;
}

absl::Status CheckSensitivityFlags(const PlanFlags& flags) {
  if (!flags.sensitivity) {
    return RefuseGiven(flags.app, {"--draws", "--seed", "--relative-error"},
                       "without --sensitivity (or, of draws and seed, --measured)");
  }
  if (Given(flags.app, "--draws") && flags.measured.draws == 0)
    return Misuse("--draws: is 0, and --sensitivity needs at least 1");
  if (!flags.question.tables.empty()) {
    return Misuse(
        "--sensitivity: tables have no variances whose uncertainty could be looked at; leave it "
        "out");
  }
  if (!flags.question.variances.empty() && flags.relative_error == 0) {
    return Misuse(
        "--sensitivity: --variances has no confidence intervals; give --relative-error, such as "
        "0.1 for 10 %, or a spectrum.toml or data in place of --variances");
  }
  return absl::OkStatus();
}

// Is a student of fewer steps better? Looked at as long again as the search took, at least a
// second, within the time limit. Nothing where N = 1.
absl::StatusOr<std::optional<FewerBlocksAnswer>> LookAtFewer(const Model& model,
                                                             const SearchResult& result,
                                                             SearchOptions options) {
  if (options.student_steps == 1) return std::optional<FewerBlocksAnswer>();
  options.time_limit_seconds =
      std::min(options.time_limit_seconds - result.seconds, std::max(1.0, result.seconds));
  absl::StatusOr<FewerBlocksAnswer> out = TryFewerBlocks(model, result, options);
  MP_RETURN_IF_ERROR(out.status());
  return std::optional(*std::move(out));
}

nlohmann::ordered_json BetterJson(const std::optional<FewerBlocksAnswer>& fewer) {
  const FewerBlocksAnswer::Try* best = fewer ? fewer->Best() : nullptr;
  if (best == nullptr) return nullptr;
  const SearchResult& result = best->result;
  return {{"student_steps", best->student_steps},
          {"objective", result.objective},
          {"lower_bound", result.lower_bound},
          {"gap", result.gap()},
          {"status", std::string(ToString(result.status))},
          {"certain", best->certain},
          {"merges_trained", result.plan.size()},
          {"plan", result.plan.ToString()}};
}

nlohmann::ordered_json TriesJson(const FewerBlocksAnswer& fewer) {
  nlohmann::ordered_json tried = nlohmann::ordered_json::array();
  for (const FewerBlocksAnswer::Try& one : fewer.tries) {
    tried.push_back({{"student_steps", one.student_steps},
                     {"objective", one.result.objective},
                     {"lower_bound", one.result.lower_bound}});
  }
  return {{"tried", std::move(tried)}, {"left_out", fewer.left_out}};
}

std::string FewerText(const FewerBlocksAnswer& fewer, int asked, int merges) {
  std::string out;
  if (const FewerBlocksAnswer::Try* best = fewer.Best()) {
    out = absl::StrFormat(
        "fewer steps are better: a student of %d step%s has an objective of %.6e%s, with %d merges "
        "in place of %d; ask with -N %d",
        best->student_steps, best->student_steps == 1 ? "" : "s", best->result.objective,
        best->certain ? ", which no student of as many steps as asked for reaches" : "",
        best->result.plan.size(), merges, best->student_steps);
  } else if (!fewer.tries.empty()) {
    std::string numbers;
    for (const FewerBlocksAnswer::Try& one : fewer.tries)
      absl::StrAppend(&numbers, numbers.empty() ? "" : ", ", one.student_steps);
    out = absl::StrFormat("no better student of fewer than %d steps was found (tried: %s)", asked,
                          numbers);
  }
  if (fewer.left_out > 0) {
    absl::StrAppend(&out, out.empty() ? "" : "; ",
                    "whether fewer steps are better was not looked at for ", fewer.left_out,
                    " number", fewer.left_out == 1 ? "" : "s", " of steps: there was no time left");
  }
  return out;
}

absl::StatusOr<std::optional<Sensitivity>> LookAtSensitivity(const PlanFlags& flags,
                                                             const Question& question,
                                                             const SearchResult& result,
                                                             const SearchOptions& search) {
  if (!flags.sensitivity) {
    return QuickSensitivity(question.model, question.intervals, result.plan, "plan",
                            search.threads);
  }
  SensitivityOptions options;
  if (Given(flags.app, "--draws")) options.draws = flags.measured.draws;
  options.seed = static_cast<std::uint64_t>(flags.measured.seed);
  options.search = search;
  options.time_limit_seconds = flags.time_limit;
  const VarianceIntervals intervals =
      flags.relative_error > 0
          ? RelativeIntervals(question.model.spec().variances, flags.relative_error)
          : *question.intervals;
  absl::StatusOr<Sensitivity> out =
      AnalyzeSensitivity(question.model, intervals, result.plan, "plan", options);
  if (!out.ok()) {
    return Misuse(absl::StrCat(flags.relative_error > 0 ? "--relative-error" : "--sensitivity",
                               ": ", std::string(out.status().message())));
  }
  return std::optional(*std::move(out));
}

void PrintPlan(const Question& question, const PlanDocument& document) {
  PrintAssumptions(question);
  std::printf("plan         %s\n", document.plan.ToString().c_str());
  std::printf("objective    %.12e (%steacher %.6e)\n", document.objective,
              document.objective_surrogate
                  ? absl::StrFormat("surrogate %.6e, ", *document.objective_surrogate).c_str()
                  : "",
              document.objective_teacher);
  std::printf("lower bound  %.12e, gap %.3g, status %s, %.2f s\n", document.lower_bound,
              document.gap(), document.status.c_str(), document.seconds);
  std::printf("%s\n\n", document.guarantee.c_str());
  std::vector<StrategyFigures> rows = document.strategies;
  rows.push_back({"plan", document.objective, document.objective_equal_total_time,
                  document.plan.size(), CostsOf(document.plan)});
  std::printf("%s", FiguresTable(rows).c_str());
}

absl::StatusOr<int> RunOne(const PlanFlags& flags, SearchOptions options) {
  MP_RETURN_IF_ERROR(CheckSensitivityFlags(flags));
  MP_ASSIGN_OR_RETURN(const Question question, AskFromFlags(flags.question));
  ProgressLine progress(!flags.json && !flags.quiet);
  options.progress = progress.Callback();
  options.interrupted = [&progress] {
    progress.Tick();
    return Interrupted();
  };
  CatchInterrupts();
  absl::StatusOr<SearchResult> result = Solve(question.model, options);
  progress.Clear();
  if (!result.ok()) return Misuse(result.status());
  options.progress = nullptr;
  options.interrupted = Interrupted;
  MP_ASSIGN_OR_RETURN(const PlanDocument document,
                      DocumentOf(question.model, question.input, question.basis, *result, options));
  // Written at once: what follows is about the plan, and may be interrupted.
  if (!flags.output.empty()) MP_RETURN_IF_ERROR(WritePlan(document, flags.output));

  if (options.student_steps > 1) progress.Begin("looking at students of fewer steps");
  MP_ASSIGN_OR_RETURN(const std::optional<FewerBlocksAnswer> fewer,
                      LookAtFewer(question.model, *result, options));
  if (flags.sensitivity) progress.Begin("drawing variances");
  MP_ASSIGN_OR_RETURN(const std::optional<Sensitivity> sensitivity,
                      LookAtSensitivity(flags, question, *result, options));
  progress.Clear();

  PrintNotes(question.model);
  if (flags.json) {
    std::vector<std::pair<std::string, std::string>> remarks = {
        {"fewer_blocks_better", BetterJson(fewer).dump()}};
    if (fewer) remarks.emplace_back("fewer_blocks", TriesJson(*fewer).dump());
    if (sensitivity) remarks.emplace_back("sensitivity", SensitivityJson(*sensitivity).dump());
    nlohmann::ordered_json device = result->device;
    remarks.emplace_back("device", device.dump());
    std::printf("%s\n", PlanJson(document, remarks).c_str());
  } else {
    PrintPlan(question, document);
    std::printf("\n");
    if (fewer) {
      std::printf("%s\n", FewerText(*fewer, options.student_steps, result->plan.size()).c_str());
    }
    if (sensitivity && flags.sensitivity) {
      std::printf("%s", SensitivityText(*sensitivity).c_str());
    } else if (sensitivity) {
      std::printf("how sure: %s (more with --sensitivity)\n",
                  HowSure(*sensitivity, "the plan").c_str());
    }
    if (question.intervals && !sensitivity) std::printf("%s\n", kNotLookedAt);
    if (question.model.has_schedule())
      std::printf("for networks: %s\n", NetworkAdvice(question.model.init()).c_str());
    if (!flags.output.empty()) std::printf("\nwritten to %s\n", flags.output.c_str());
  }
  const bool stopped =
      result->status == SearchStatus::kInterrupted || result->status == SearchStatus::kTimeLimit;
  const bool draws_left_out =
      flags.sensitivity && sensitivity->draws + sensitivity->refused < sensitivity->asked;
  return stopped || draws_left_out ? kStopped : kDone;
}

absl::StatusOr<int> RunSeveral(const PlanFlags& flags, SearchOptions options) {
  for (const char* name : {"--output", "--sensitivity"}) {
    if (!Given(flags.app, name)) continue;
    return Misuse(absl::StrCat(
        name,
        ": is about one plan, but --schedule and --teacher-steps name several; choose one of "
        "them first"));
  }
  MP_RETURN_IF_ERROR(CheckSensitivityFlags(flags));
  MP_ASSIGN_OR_RETURN(const Questions questions, AskSeveral(flags.question));
  ProgressLine progress(!flags.json && !flags.quiet);
  options.progress = progress.Callback();
  options.interrupted = [&progress] {
    progress.Tick();
    return Interrupted();
  };
  CatchInterrupts();
  const int count = static_cast<int>(questions.specs.size());
  const auto begins = [&](int k) {
    const Schedule& schedule = questions.specs[static_cast<std::size_t>(k)].schedule;
    progress.Begin(
        absl::StrFormat("%d of %d, %s, %d steps", k + 1, count, schedule.spec, schedule.steps()));
  };
  absl::StatusOr<ComparedCombinations> all = SolveCombinations(
      count, [&](int k) { return questions.ModelOf(k); }, options, begins);
  progress.Clear();
  if (!all.ok()) return Misuse(all.status());
  for (std::size_t k = 0; k < all->rows.size(); ++k)
    all->rows[k].asked_steps = questions.asked_steps[k];
  std::printf("%s", flags.json ? ChoicesJson(questions, options, *all).c_str()
                               : ChoicesText(questions, options, *all).c_str());
  return all->stopped() ? kStopped : kDone;
}

absl::StatusOr<int> RunPlan(PlanFlags flags) {
  if (!flags.measured.file.empty()) {
    return RunPlanMeasured(flags.measured, flags.question.training.student_steps, flags.json,
                           flags.output);
  }
  MP_RETURN_IF_ERROR(CheckLinearFlags(flags.measured));
  MP_RETURN_IF_ERROR(CheckOutput(flags.output,
                                 {flags.question.data.input, flags.question.variances,
                                  flags.question.weights, flags.question.tables},
                                 OutputKind::kWithArrays));
  MP_ASSIGN_OR_RETURN(SearchOptions options, OptionsOf(flags));
  MP_RETURN_IF_ERROR(SplitChoices(flags.question.training));
  const TrainingFlags& training = flags.question.training;
  const SharedFlags shared{flags.json, flags.quiet, flags.output};
  if (flags.shared) {
    MP_RETURN_IF_ERROR(RefuseGiven(
        flags.app, {"--sensitivity", "--draws", "--seed", "--relative-error"}, "with --shared"));
    MP_RETURN_IF_ERROR(CheckSharedFlags(shared));
  }
  const bool several =
      flags.question.tables.empty() &&
      training.schedule_list.size() * std::max<std::size_t>(1, training.teacher_steps_list.size()) >
          1;
  if (flags.shared) {
    if (several) {
      return Misuse(
          "--shared: is about one plan, but --schedule and --teacher-steps name several; choose "
          "one of them first");
    }
    MP_ASSIGN_OR_RETURN(const Question question, AskFromFlags(flags.question));
    return RunPlanShared(question, std::move(options), shared);
  }
  return several ? RunSeveral(flags, std::move(options)) : RunOne(flags, std::move(options));
}

}  // namespace

Command MakePlan(CLI::App& top) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* app =
      top.add_subcommand("plan", "Find the merge schedule that loses least, with a certificate");
  flags->app = app;
  app->footer(
      "example: mergeplan plan --variances 0.95,1.05 --teacher-steps 32 --schedule cosine "
      "--train-time 6.4 --gap 0\n"
      "example: mergeplan plan spectrum.toml -T 16,32,64 --schedule cosine,flow:shift=3 -s 1.6 "
      "--reference data\n"
      "Ctrl-C or the time limit gives the best plan so far with its certificate, and exit code 3. "
      "--json: the keys of a plan file, and merges_trained, rounds, teacher_calls, student_calls "
      "(also "
      "in strategies), fewer_blocks_better, fewer_blocks, sensitivity, device; of several "
      "schedules or "
      "steps: combinations, compared_by, best, best_is_certain, remark. planner/cli/README.md says "
      "what "
      "they mean.");
  AddQuestionFlags(*app, flags->question, true);
  AddMeasuredFlags(*app, flags->measured, true);
  app->add_option("--space", flags->space,
                  "nary (default: merges of any number of blocks) or binary (Algorithm 1)")
      ->type_name("SPACE");
  AddInteger(*app, "--max-rounds", flags->max_rounds, 1,
             "rounds of merges that the plan may have (default: any number)")
      ->type_name("R");
  AddReal(*app, "--gap", flags->gap, Real::kShare,
          "stop within this relative gap (default 1e-3); 0 asks for a proof of optimality")
      ->type_name("GAP");
  AddReal(*app, "--time-limit", flags->time_limit, Real::kPositiveTime,
          "seconds (default 30), shared by all schedules and numbers of teacher steps; "
          "--sensitivity has as much again")
      ->type_name("S");
  app->add_option("--device", flags->device,
                  "auto (default: a CUDA device where there is one and it helps), cpu or cuda")
      ->type_name("DEVICE");
  app->add_flag("--shared", flags->shared,
                "the training given is one total that the merges of the plan share, not that of "
                "every merge: finds the plan and the shares");
  app->add_flag("--sensitivity", flags->sensitivity,
                "how the plan's lead changes within the confidence intervals of the variances: "
                "draws them, log-normal and independent of each other, and compares plan, "
                "strategies and plans made anew on every draw");
  AddReal(*app, "--relative-error", flags->relative_error, Real::kPositive,
          "with --sensitivity: take v/(1+E) .. v(1+E) for the 95 % interval of every variance v, "
          "in place of intervals that were estimated")
      ->type_name("E");
  app->add_option("-o,--output", flags->output, "plan file to write (.toml or .json)")
      ->type_name("FILE");
  app->add_flag("--json", flags->json, "print one JSON object");
  app->add_flag("--quiet", flags->quiet, "no line of progress on a terminal");
  return {app, [flags] {
            const absl::StatusOr<int> code = RunPlan(*flags);
            return code.ok() ? *code : Report("plan", code.status());
          }};
}

}  // namespace mergeplan::cli
