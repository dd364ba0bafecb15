#include "planner/cli/answer.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_format.h"

namespace mergeplan::cli {

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

std::string NetworkAdvice(Init init) {
  if (init == Init::kChild || init == Init::kTeacher) {
    return absl::StrFormat(
        "a network behind a DDIM wrapper does not start as %s, so do not take this for one: ask "
        "with --init child-jump, or --init jump where every merge starts from the teacher",
        std::string(ToString(init)));
  }
  return absl::StrFormat(
      "in the linear model the start %s has one best strategy for all data; networks differ by "
      "what that "
      "model leaves out, so measure before deciding (plan --measured)",
      std::string(ToString(init)));
}

std::string FiguresTable(const std::vector<StrategyFigures>& rows) {
  const bool budgets = std::any_of(rows.begin(), rows.end(), [](const StrategyFigures& row) {
    return row.objective_equal_total_time.has_value();
  });
  std::string out =
      absl::StrFormat("%-14s %14s", "strategy", budgets ? "same per merge" : "objective");
  if (budgets) absl::StrAppendFormat(&out, " %16s", "same total time");
  absl::StrAppendFormat(&out, " %7s %7s %14s %14s\n", "merges", "rounds", "teacher calls",
                        "student calls");
  for (const StrategyFigures& row : rows) {
    absl::StrAppendFormat(&out, "%-14s %14.6e", row.name, row.objective);
    if (budgets) {
      absl::StrAppendFormat(&out, " %16s",
                            row.objective_equal_total_time
                                ? absl::StrFormat("%.6e", *row.objective_equal_total_time)
                                : "-");
    }
    const PlanCosts costs = row.costs.value_or(PlanCosts{});
    absl::StrAppendFormat(&out, " %7d %7d %14d %14d\n", row.merges_trained, costs.rounds,
                          costs.teacher_calls, costs.student_calls);
  }
  return out;
}

}  // namespace mergeplan::cli
