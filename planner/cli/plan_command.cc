#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"
#include "planner/cli/answer.h"
#include "planner/cli/command.h"
#include "planner/cli/flags.h"
#include "planner/cli/plan_measured.h"
#include "planner/cli/question.h"
#include "planner/plan/io/document.h"
#include "planner/search/search.h"

namespace mergeplan::cli {
namespace {

struct PlanFlags {
  QuestionFlags question;
  MeasuredFlags measured;
  std::string space = "nary";
  double gap = 1e-3;
  double time_limit = 30;
  std::string output;
  bool json = false;
};

void PrintNotes(const Model& model) {
  if (!model.has_schedule()) return;
  for (const std::string& note : model.schedule().notes)
    std::fprintf(stderr, "note: %s\n", note.c_str());
}

void PrintAssumptions(const Question& question) {
  const Model& model = question.model;
  if (!model.has_schedule()) {
    std::printf("%d dimensions, %d teacher steps, tables of %s\n", model.dimensions(),
                model.steps(), question.input.c_str());
    return;
  }
  std::printf("%d dimensions (basis %s), %d teacher steps, schedule %s\n", model.dimensions(),
              question.basis.c_str(), model.steps(), model.schedule().spec.c_str());
  std::printf("students start as %s, train by %s, are compared with the %s\n",
              std::string(ToString(model.init())).c_str(), model.budget().ToString().c_str(),
              std::string(ToString(model.reference())).c_str());
}

absl::StatusOr<int> RunPlan(const PlanFlags& flags) {
  if (!flags.measured.file.empty()) {
    return RunPlanMeasured(flags.measured, flags.question.training.student_steps, flags.json,
                           flags.output);
  }
  MP_RETURN_IF_ERROR(CheckLinearFlags(flags.measured));
  MP_RETURN_IF_ERROR(CheckOutput(flags.output,
                                 {flags.question.data.input, flags.question.variances,
                                  flags.question.weights, flags.question.tables},
                                 OutputKind::kWithArrays));
  absl::StatusOr<Space> space = ParseSpace(flags.space);
  if (!space.ok()) return Misuse(absl::StrCat("--", std::string(space.status().message())));
  MP_ASSIGN_OR_RETURN(const Question question, AskFromFlags(flags.question));
  SearchOptions options;
  options.student_steps = flags.question.training.student_steps;
  options.space = *space;
  options.gap = flags.gap;
  options.time_limit_seconds = flags.time_limit;
  options.threads = flags.question.data.threads;
  options.interrupted = Interrupted;
  CatchInterrupts();
  absl::StatusOr<SearchResult> result = Solve(question.model, options);
  if (!result.ok()) return Misuse(result.status());
  MP_ASSIGN_OR_RETURN(const PlanDocument document, DocumentOf(question, *result, *space));
  if (!flags.output.empty()) MP_RETURN_IF_ERROR(WritePlan(document, flags.output));

  PrintNotes(question.model);
  if (flags.json) {
    std::printf("%s\n", PlanJson(document).c_str());
  } else {
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
    rows.push_back(
        {"plan", document.objective, document.objective_equal_total_time, document.plan.size()});
    std::printf("%s", FiguresTable(rows).c_str());
    if (!flags.output.empty()) std::printf("\nwritten to %s\n", flags.output.c_str());
  }
  const bool stopped =
      result->status == SearchStatus::kInterrupted || result->status == SearchStatus::kTimeLimit;
  return stopped ? kStopped : kDone;
}

struct CompareFlags {
  QuestionFlags question;
  MeasuredFlags measured;
  bool json = false;
};

absl::StatusOr<int> RunCompare(const CompareFlags& flags) {
  if (!flags.measured.file.empty()) {
    return RunCompareMeasured(flags.measured, flags.question.training.student_steps, flags.json);
  }
  MP_RETURN_IF_ERROR(CheckLinearFlags(flags.measured));
  MP_ASSIGN_OR_RETURN(const Question question, AskFromFlags(flags.question));
  const int blocks = flags.question.training.student_steps;
  absl::StatusOr<std::vector<StrategyFigures>> rows = CanonicalFigures(question.model, blocks);
  if (!rows.ok()) return Misuse(rows.status());
  PrintNotes(question.model);
  if (flags.json) {
    nlohmann::ordered_json strategies;
    for (const StrategyFigures& row : *rows) {
      nlohmann::ordered_json& figures = strategies[row.name];
      figures["objective"] = row.objective;
      if (row.objective_equal_total_time)
        figures["objective_equal_total_time"] = *row.objective_equal_total_time;
      figures["merges_trained"] = row.merges_trained;
    }
    const Model& model = question.model;
    nlohmann::ordered_json out = {{"teacher_steps", model.steps()},
                                  {"student_steps", blocks},
                                  {"dimensions", model.dimensions()}};
    if (model.has_schedule()) {
      out["basis"] = question.basis;
      out["init"] = std::string(ToString(model.init()));
      out["reference"] = std::string(ToString(model.reference()));
    } else {
      out["tables"] = ReplaceInvalidUtf8(question.input);
    }
    out["strategies"] = strategies;
    std::printf("%s\n", out.dump(2).c_str());
  } else {
    PrintAssumptions(question);
    std::printf("\n%s", FiguresTable(*rows).c_str());
  }
  return kDone;
}

template <typename Flags, typename Body>
std::function<int()> Runner(const char* name, std::shared_ptr<Flags> flags, Body body) {
  return [name, flags, body] {
    absl::StatusOr<int> code = body(*flags);
    return code.ok() ? *code : Report(name, code.status());
  };
}

}  // namespace

Command MakePlan(CLI::App& top) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* app =
      top.add_subcommand("plan", "Find the merge schedule that loses least, with a certificate");
  app->footer(
      "example: mergeplan plan --variances 0.95,1.05 --teacher-steps 32 --schedule cosine "
      "--train-time 6.4 --gap 0");
  AddQuestionFlags(*app, flags->question);
  AddMeasuredFlags(*app, flags->measured, true);
  app->add_option("--space", flags->space,
                  "nary (default: merges of any number of blocks) or binary (Algorithm 1)")
      ->type_name("SPACE");
  AddReal(*app, "--gap", flags->gap, Real::kShare,
          "stop within this relative gap (default 1e-3); 0 asks for a proof of optimality")
      ->type_name("GAP");
  AddReal(*app, "--time-limit", flags->time_limit, Real::kPositiveTime, "seconds (default 30)")
      ->type_name("S");
  app->add_option("-o,--output", flags->output, "plan file to write (.toml or .json)")
      ->type_name("FILE");
  app->add_flag("--json", flags->json, "print one JSON object");
  return {app, Runner("plan", flags, RunPlan)};
}

Command MakeCompare(CLI::App& top) {
  auto flags = std::make_shared<CompareFlags>();
  CLI::App* app = top.add_subcommand(
      "compare", "Predicted error of every strategy side by side, under both budgets");
  app->footer(
      "example: mergeplan compare spectrum.toml -T 32 --schedule cosine --lr 0.005 --iterations "
      "320");
  AddQuestionFlags(*app, flags->question);
  AddMeasuredFlags(*app, flags->measured, false);
  app->add_flag("--json", flags->json, "print one JSON object");
  return {app, Runner("compare", flags, RunCompare)};
}

}  // namespace mergeplan::cli
