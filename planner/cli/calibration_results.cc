#include "planner/cli/calibration_results.h"

#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan::cli {
namespace {

using Json = nlohmann::json;

Range RangeOf(const Json& json) { return {json.at(0).get<int>(), json.at(1).get<int>()}; }
std::vector<Range> RangesOf(const Json& json) {
  std::vector<Range> out;
  for (const Json& range : json) out.push_back(RangeOf(range));
  return out;
}
ErrorRange ErrorOf(const Json& json) {
  return {json.at("value").get<double>(), json.at("low").get<double>(),
          json.at("high").get<double>()};
}

CalibrationPilot PilotOf(const Json& json) {
  CalibrationPilot out;
  out.range = RangeOf(json.at("range"));
  out.trained = RangesOf(json.at("trained_children"));
  json.at("replicate").get_to(out.replicate);
  json.at("held_out").get_to(out.held_out);
  json.at("start").get_to(out.start);
  json.at("updates").get_to(out.updates);
  json.at("error").get_to(out.error);
  json.at("standard_error").get_to(out.standard_error);
  for (const Json& fitted : json.at("fitted")) out.fitted.push_back(ErrorOf(fitted));
  return out;
}

CalibrationJudged JudgedOf(const Json& json, const std::string& rule, bool held_out) {
  CalibrationJudged out;
  out.range = RangeOf(json.at("range"));
  out.trained = RangesOf(json.at("trained_children"));
  out.held_out = held_out;
  json.at("measured").get_to(out.measured);
  json.at("measured_standard_error").get_to(out.standard_error);
  out.predicted = ErrorOf(json.at(rule));
  json.at("linear").get_to(out.linear);
  return out;
}

absl::StatusOr<CalibrationPlan> PlanOf(const Json& json, int teacher_steps) {
  CalibrationPlan out;
  json.at("name").get_to(out.name);
  PlanBuilder builder(teacher_steps);
  for (const Json& merge : json.at("merges")) builder.Merge(RangesOf(merge.at("children")));
  MP_ASSIGN_OR_RETURN(out.plan, builder.Finish(RangesOf(json.at("blocks"))));
  out.error = ErrorOf(json.at("measured"));
  if (json.contains("measured_same_total")) {
    out.same_total = ErrorOf(json.at("measured_same_total"));
  }
  json.at("linear").get_to(out.linear);
  return out;
}

absl::Status Fill(const Json& json, CalibrationPage* out) {
  json.at("teacher").get_to(out->teacher);
  json.at("init").get_to(out->start);
  json.at("inputs").get_to(out->inputs);
  json.at("training").get_to(out->training);
  json.at("iterations").get_to(out->iterations);
  json.at("pilot_updates").get_to(out->pilot_updates);
  json.at("updates").get_to(out->updates);
  json.at("teacher_calls").get_to(out->teacher_calls);
  json.at("seconds").get_to(out->seconds);
  json.at("complete").get_to(out->complete);
  out->failure = json.value("failure", "");
  json.at("spread").get_to(out->spread);
  json.at("spread_between_seeds").get_to(out->spread_of_seeds);
  json.at("floor_share").get_to(out->floor_share);
  json.at("linear_train_time").get_to(out->linear_time);
  json.at("better_than_linear_in_draws").get_to(out->better_in_draws);
  const auto rule = json.at("combine").get<std::string>();
  const Json &scores = json.at("scores"), &own = scores.at(rule);
  own.at("factor").get_to(out->factor);
  own.at("merges").get_to(out->judged_merges);
  own.at("within_interval").get_to(out->within);
  scores.at("linear").at("factor").get_to(out->linear_factor);
  scores.at(rule == "sum" ? "rms" : "sum").at("factor").get_to(out->other_rule_factor);
  for (const Json& pilot : json.at("curves")) out->pilots.push_back(PilotOf(pilot));
  for (const Json& judged : json.at("held_out")) {
    out->judged.push_back(JudgedOf(judged, rule, true));
  }
  for (const Json& judged : json.at("seen")) {
    // Of merges over single steps the error that was fitted is the one here.
    if (judged.at("trained_children").empty()) continue;
    out->judged.push_back(JudgedOf(judged, rule, false));
  }
  for (const Json& plan : json.at("plans")) {
    MP_ASSIGN_OR_RETURN(CalibrationPlan row, PlanOf(plan, out->tables.teacher_steps));
    out->plans.push_back(std::move(row));
  }
  for (const char* key : {"output", "arrays", "plan"}) {
    if (json.contains(key)) out->files.push_back(json.at(key).get<std::string>());
  }
  return absl::OkStatus();
}

}  // namespace

bool IsCalibration(const std::string& path) {
  if (!absl::EndsWith(path, ".toml")) return false;
  // Other files are no runs, which is said elsewhere.
  const absl::StatusOr<std::string> text = ReadFile(path);
  return text.ok() && (absl::StrContains(*text, "kind = \"measured\"") ||
                       absl::StrContains(*text, "kind = 'measured'"));
}

std::string AnswerFileOf(const std::string& path) {
  return absl::StrCat(path.substr(0, path.size() - 5), ".answer.json");
}

absl::StatusOr<CalibrationPage> ReadCalibration(const std::string& path) {
  CalibrationPage out;
  MP_ASSIGN_OR_RETURN(out.tables, ReadMeasured(path));
  const std::string answer = AnswerFileOf(path);
  const absl::StatusOr<std::string> text = ReadFile(answer);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(
        absl::StrCat(answer, ": not found, expected what mergeplan calibrate writes beside ", path,
                     "; run its command again with --resume, which trains nothing twice"));
  }
  MP_RETURN_IF_ERROR(text.status());
  MP_ASSIGN_OR_RETURN(const std::string hash, Sha256OfFile(path));
  try {
    const Json json = Json::parse(*text);
    if (json.at("output_sha256").get<std::string>() != hash) {
      return absl::DataLossError(
          absl::StrCat(answer, ": belongs to other tables than those in ", path,
                       "; run calibrate again with --resume, or bring both files back"));
    }
    const absl::Status filled = Fill(json, &out);
    if (filled.ok()) return out;
    return absl::DataLossError(absl::StrCat(answer, ": ", std::string(filled.message())));
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat(answer, ": ", error.what(),
                                            ", expected what mergeplan calibrate writes there"));
  }
}

}  // namespace mergeplan::cli
