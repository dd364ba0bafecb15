#include "planner/cli/plan_choices.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/utf8.h"

namespace mergeplan::cli {
namespace {

using Json = nlohmann::ordered_json;

Json Number(const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); }

std::string Text(const std::optional<double>& number) {
  return number ? absl::StrFormat("%.6e", *number) : "-";
}

// What may be compared between rows, and what may not.
std::string Remark(Reference reference, const ComparedCombinations& all) {
  std::string out;
  if (reference == Reference::kData) {
    out = "objectives may be compared: all are errors against the same data";
  } else {
    out = absl::StrFormat(
        "objectives may not be compared between rows: each is against the %s of its own steps and "
        "schedule. Only \"student/data\" has the same target in every row; the plans were not made "
        "for it (--reference data does that)",
        std::string(ToString(reference)));
  }
  absl::StrAppend(&out,
                  ". Every merge has the same training, so rows with more merges train longer in "
                  "all");
  if (all.best < 0)
    return out + ". No row has a figure that may be compared: no schedule ends at unit noise";
  if (std::any_of(all.rows.begin(), all.rows.end(),
                  [](const Combination& row) { return !row.objective_data; })) {
    out += ". Rows without student/data do not end at unit noise and are left out";
  }
  if (reference == Reference::kData) {
    out += all.certain ? ". No plan of another row is better than the one marked"
                       : ". The row marked has the best plan found; within the gaps another row "
                         "may have a better one";
  }
  return out;
}

}  // namespace

std::string ChoicesText(const Questions& questions, const SearchOptions& options,
                        const ComparedCombinations& all) {
  const ModelSpec& spec = questions.specs[0];
  std::size_t width = 8;
  for (const Combination& row : all.rows) width = std::max(width, row.schedule.size());
  const int w = static_cast<int>(width);
  std::string out = absl::StrFormat(
      "%d dimensions (basis %s), %d student step%s\n"
      "students start as %s, train by %s, are planned for the %s\n\n",
      static_cast<int>(questions.variances.size()), questions.basis, options.student_steps,
      options.student_steps == 1 ? "" : "s", std::string(ToString(spec.init)),
      spec.budget.ToString(), std::string(ToString(spec.reference)));
  absl::StrAppendFormat(&out, "  %5s %-*s %13s %13s %8s %-11s %6s %6s %7s %15s %13s %13s\n", "T", w,
                        "schedule", "objective", "lower bound", "gap", "status", "merges", "rounds",
                        "calls", "student/teacher", "student/data", "teacher/data");
  for (std::size_t k = 0; k < all.rows.size(); ++k) {
    const Combination& row = all.rows[k];
    absl::StrAppendFormat(&out,
                          "%s %5d %-*s %13.6e %13.6e %8.2g %-11s %6d %6d %7d %15.6e %13s %13s\n",
                          static_cast<int>(k) == all.best ? "*" : " ", row.teacher_steps, w,
                          row.schedule, row.result.objective, row.result.lower_bound,
                          row.result.gap(), std::string(ToString(row.result.status)),
                          row.result.plan.size(), row.costs.rounds, row.costs.teacher_calls,
                          row.objective_teacher, Text(row.objective_data), Text(row.teacher_data));
  }
  absl::StrAppendFormat(&out, "\n%s.\n", Remark(spec.reference, all));
  for (const Combination& row : all.rows) {
    for (const std::string& note : row.notes)
      absl::StrAppendFormat(&out, "note: %s, %d steps: %s\n", row.schedule, row.asked_steps, note);
  }
  return out;
}

std::string ChoicesJson(const Questions& questions, const SearchOptions& options,
                        const ComparedCombinations& all) {
  const ModelSpec& spec = questions.specs[0];
  Json out = {{"dimensions", questions.variances.size()},
              {"student_steps", options.student_steps},
              {"input", ReplaceInvalidUtf8(questions.input)},
              {"basis", questions.basis},
              {"init", std::string(ToString(spec.init))},
              {"reference", std::string(ToString(spec.reference))},
              {"space", std::string(ToString(options.space))}};
  out["combinations"] = Json::array();
  for (const Combination& row : all.rows) {
    Json one = {{"teacher_steps", row.teacher_steps},
                {"schedule", ReplaceInvalidUtf8(row.schedule)},
                {"objective", row.result.objective},
                {"lower_bound", row.result.lower_bound},
                {"gap", row.result.gap()},
                {"tolerance", row.result.tolerance},
                {"status", std::string(ToString(row.result.status))},
                {"guarantee", row.result.guarantee},
                {"objective_teacher", row.objective_teacher},
                {"objective_data", Number(row.objective_data)},
                {"teacher_data", Number(row.teacher_data)},
                {"merges_trained", row.result.plan.size()},
                {"rounds", row.costs.rounds},
                {"teacher_calls", row.costs.teacher_calls},
                {"student_calls", row.costs.student_calls},
                {"plan", row.result.plan.ToString()},
                {"seconds", row.result.seconds}};
    if (!row.notes.empty()) one["notes"] = row.notes;
    out["combinations"].push_back(std::move(one));
  }
  out["compared_by"] = "objective_data";
  out["best"] = all.best < 0 ? Json(nullptr) : Json(all.best);
  out["best_is_certain"] = all.certain;
  out["remark"] = Remark(spec.reference, all);
  out["seconds"] = all.seconds;
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace mergeplan::cli
