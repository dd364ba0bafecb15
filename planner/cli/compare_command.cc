#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "planner/answer/solved.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"
#include "planner/cli/answer.h"
#include "planner/cli/command.h"
#include "planner/cli/plan_measured.h"
#include "planner/cli/question.h"

namespace mergeplan::cli {
namespace {

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
      if (!row.costs) continue;
      figures["rounds"] = row.costs->rounds;
      figures["teacher_calls"] = row.costs->teacher_calls;
      figures["student_calls"] = row.costs->student_calls;
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

}  // namespace

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
  return {app, [flags] {
            const absl::StatusOr<int> code = RunCompare(*flags);
            return code.ok() ? *code : Report("compare", code.status());
          }};
}

}  // namespace mergeplan::cli
