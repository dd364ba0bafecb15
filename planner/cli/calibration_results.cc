#include "planner/cli/calibration_results.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "planner/base/file.h"
#include "planner/base/file_kind.h"
#include "planner/base/status_macros.h"

namespace mergeplan::cli {
namespace {

using Json = nlohmann::json;

constexpr const char* kNextStep =
    "run mergeplan calibrate again with --resume, which trains nothing twice";
// Of errors and other numbers: beyond it nothing was measured, and sums and squares overflow.
constexpr double kMost = 1e100;
constexpr double kLeastAboveZero = std::numeric_limits<double>::denorm_min();
constexpr std::int64_t kMostCount = 1'000'000'000'000'000;

std::string Found(const Json& json) {
  if (json.is_array()) {
    return json.empty() ? "an empty list" : absl::StrCat("a list of ", json.size());
  }
  if (json.is_object()) return "an object";
  constexpr std::size_t kShown = 60;
  std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown) + "…";
  return text;
}

// A value of the answer, with its key. The first problem is kept for the file, and what is asked of
// any value then gives nothing.
class Node {
 public:
  Node(const Json* json, std::string key, absl::Status* problem)
      : json_(json), key_(std::move(key)), problem_(problem) {}

  Node At(const std::string& key) const {
    const std::string name = key_.empty() ? key : absl::StrCat(key_, ".", key);
    if (Good() && !json_->is_object()) Refuse("an object");
    if (!Good()) return {nullptr, name, problem_};
    const auto at = json_->find(key);
    if (at != json_->end()) return {&*at, name, problem_};
    const Node missing(nullptr, name, problem_);
    missing.Say("is missing, expected what mergeplan calibrate writes there");
    return missing;
  }
  bool Has(const std::string& key) const {
    return Good() && json_->is_object() && json_->contains(key);
  }
  std::vector<Node> Items(std::size_t least = 0) const {
    std::vector<Node> out;
    if (Good() && (!json_->is_array() || json_->size() < least)) {
      Refuse(least == 0 ? "a list" : absl::StrCat("a list of ", least, " or more"));
    }
    if (!Good()) return out;
    for (std::size_t k = 0; k < json_->size(); ++k) {
      out.emplace_back(&(*json_)[k], absl::StrCat(key_, "[", k, "]"), problem_);
    }
    return out;
  }
  double Number(double least = 0, double most = kMost) const {
    if (!Good()) return least;
    const double value =
        json_->is_number() ? json_->get<double>() : std::numeric_limits<double>::quiet_NaN();
    if (value >= least && value <= most) return value;
    Refuse(least == kLeastAboveZero ? absl::StrCat("a number above 0, at most ", most)
                                    : absl::StrCat("a number from ", least, " to ", most));
    return least;
  }
  std::int64_t Whole(std::int64_t least = 0, std::int64_t most = kMostCount) const {
    if (!Good()) return least;
    // Above what an int64 holds is an unsigned one.
    const bool whole = json_->is_number_integer() &&
                       (!json_->is_number_unsigned() ||
                        json_->get<std::uint64_t>() <= static_cast<std::uint64_t>(kMostCount));
    if (whole) {
      const auto value = json_->get<std::int64_t>();
      if (value >= least && value <= most) return value;
    }
    Refuse(absl::StrCat("a whole number from ", least, " to ", most));
    return least;
  }
  bool Flag() const {
    if (Good() && !json_->is_boolean()) Refuse("true or false");
    return Good() && json_->get<bool>();
  }
  std::string Text() const {
    if (Good() && !json_->is_string()) Refuse("a text");
    return Good() ? json_->get<std::string>() : "";
  }

  void Refuse(const std::string& expected) const {
    if (Good()) Say(absl::StrCat("is ", Found(*json_), ", expected ", expected));
  }
  void Say(const std::string& what) const {
    if (!problem_->ok()) return;
    *problem_ = absl::DataLossError(
        absl::StrCat(key_.empty() ? "" : absl::StrCat(key_, ": "), what, "; ", kNextStep));
  }
  bool Good() const { return problem_->ok() && json_ != nullptr; }

 private:
  const Json* json_;  // null: there is no such value
  std::string key_;
  absl::Status* problem_;
};

Range RangeOf(const Node& node, Range within) {
  const std::vector<Node> ends = node.Items();
  if (ends.size() != 2) {
    node.Refuse("the first and the last step of a merge");
    return within;
  }
  const auto first = static_cast<int>(ends[0].Whole(within.first, within.last));
  return {first, static_cast<int>(ends[1].Whole(first, within.last))};
}
std::vector<Range> RangesOf(const Node& node, Range within, std::size_t least = 0) {
  std::vector<Range> out;
  for (const Node& range : node.Items(least)) out.push_back(RangeOf(range, within));
  return out;
}
// `least` of the value itself; an interval may reach to 0.
ErrorRange ErrorOf(const Node& node, double least = 0) {
  ErrorRange out;
  out.value = node.At("value").Number(least);
  out.low = node.At("low").Number();
  out.high = node.At("high").Number(out.low);
  return out;
}
std::vector<double> NumbersOf(const Node& node, std::size_t count) {
  std::vector<double> out;
  for (const Node& number : node.Items()) out.push_back(number.Number());
  if (out.size() != count) {
    node.Refuse(absl::StrCat("a list of ", count, ", one for each of updates"));
  }
  return out;
}

CalibrationPilot PilotOf(const Node& node, Range all) {
  CalibrationPilot out;
  out.range = RangeOf(node.At("range"), all);
  out.trained = RangesOf(node.At("trained_children"), out.range);
  out.replicate = static_cast<int>(node.At("replicate").Whole(0, std::numeric_limits<int>::max()));
  out.held_out = node.At("held_out").Flag();
  out.start = node.At("start").Number();
  for (const Node& updates : node.At("updates").Items(1)) {
    out.updates.push_back(updates.Whole(out.updates.empty() ? 1 : out.updates.back() + 1));
  }
  out.error = NumbersOf(node.At("error"), out.updates.size());
  out.standard_error = NumbersOf(node.At("standard_error"), out.updates.size());
  const Node fitted = node.At("fitted");
  for (const Node& one : fitted.Items()) out.fitted.push_back(ErrorOf(one));
  if (out.fitted.size() != out.updates.size()) {
    fitted.Refuse(absl::StrCat("a list of ", out.updates.size(), ", one for each of updates"));
  }
  return out;
}

CalibrationJudged JudgedOf(const Node& node, const std::string& rule, bool held_out, Range all) {
  CalibrationJudged out;
  out.range = RangeOf(node.At("range"), all);
  out.trained = RangesOf(node.At("trained_children"), out.range);
  out.held_out = held_out;
  // Predictions are divided by it.
  out.measured = node.At("measured").Number(kLeastAboveZero);
  out.standard_error = node.At("measured_standard_error").Number();
  out.predicted = ErrorOf(node.At(rule));
  out.linear = node.At("linear").Number();
  return out;
}

CalibrationPlan PlanOf(const Node& node, Range all) {
  CalibrationPlan out;
  out.name = node.At("name").Text();
  PlanBuilder builder(all.last);
  for (const Node& merge : node.At("merges").Items()) {
    std::vector<Range> children = RangesOf(merge.At("children"), all, 2);
    if (!children.empty()) builder.Merge(std::move(children));
  }
  const Node blocks = node.At("blocks");
  const std::vector<Range> ranges = RangesOf(blocks, all, 1);
  if (!node.Good()) return out;
  absl::StatusOr<Plan> plan = builder.Finish(ranges);
  if (plan.ok()) {
    out.plan = *std::move(plan);
  } else {
    node.Say(absl::StrCat("has merges and blocks that are no plan of ", all.last,
                          " teacher steps (", std::string(plan.status().message()),
                          "), expected those that mergeplan calibrate writes there"));
  }
  // Those of other plans are divided by it.
  out.error = ErrorOf(node.At("measured"), kLeastAboveZero);
  if (node.Has("measured_same_total")) out.same_total = ErrorOf(node.At("measured_same_total"));
  out.linear = node.At("linear").Number();
  return out;
}

// A count that the answer states beside the list that it is of.
void CheckCount(const Node& count, std::size_t listed, const std::string& list) {
  if (count.Whole() != static_cast<std::int64_t>(listed)) {
    count.Refuse(absl::StrCat(listed, ", as ", list, " has them"));
  }
}

// Merges that were trained and judged stand in both lists, those of other seeds in one.
std::size_t CountOf(const std::vector<CalibrationPilot>& pilots, bool held_out) {
  std::size_t count = 0;
  for (const CalibrationPilot& pilot : pilots) {
    count += pilot.replicate == 0 && pilot.held_out == held_out ? 1 : 0;
  }
  return count;
}

void FillScores(const Node& root, const std::string& rule, CalibrationPage* out) {
  const Node scores = root.At("scores"), own = scores.At(rule);
  out->factor = own.At("factor").Number(1);
  out->linear_factor = scores.At("linear").At("factor").Number(1);
  out->other_rule_factor = scores.At(rule == "sum" ? "rms" : "sum").At("factor").Number(1);
  out->judged_merges = out->within = 0;
  for (const CalibrationJudged& judged : out->judged) {
    if (!judged.held_out) continue;
    ++out->judged_merges;
    const bool within =
        judged.measured >= judged.predicted.low && judged.measured <= judged.predicted.high;
    out->within += within ? 1 : 0;
  }
  for (const char* model : {"sum", "rms", "linear"}) {
    CheckCount(scores.At(model).At("merges"), static_cast<std::size_t>(out->judged_merges),
               "held_out");
  }
  CheckCount(own.At("within_interval"), static_cast<std::size_t>(out->within), "held_out");
}

void Fill(const Node& root, CalibrationPage* out) {
  const Range all{1, out->tables.teacher_steps};
  out->teacher = root.At("teacher").Text();
  out->start = root.At("init").Text();
  out->inputs = root.At("inputs").Text();
  out->training = root.At("training").Text();
  out->iterations = root.At("iterations").Whole(1);
  out->pilot_updates = root.At("pilot_updates").Whole(1);
  out->updates = root.At("updates").Whole();
  out->teacher_calls = root.At("teacher_calls").Whole();
  out->seconds = root.At("seconds").Number();
  out->complete = root.At("complete").Flag();
  if (root.Has("failure")) out->failure = root.At("failure").Text();
  out->spread = root.At("spread").Number();
  out->spread_of_seeds = root.At("spread_between_seeds").Flag();
  out->floor_share = root.At("floor_share").Number(0, 1);
  out->linear_time = root.At("linear_train_time").Number();
  out->better_in_draws = root.At("better_than_linear_in_draws").Number(0, 1);
  const Node combine = root.At("combine");
  const std::string rule(ToString(out->tables.combine));
  if (combine.Text() != rule) combine.Refuse(absl::StrCat("\"", rule, "\", as in the tables"));
  const Node curves = root.At("curves");
  for (const Node& pilot : curves.Items(1)) out->pilots.push_back(PilotOf(pilot, all));
  CheckCount(root.At("pilots"), out->pilots.size(), "curves");
  for (const bool held_out : {true, false}) {
    const Node list = root.At(held_out ? "held_out" : "seen");
    const std::vector<Node> judged = list.Items();
    if (const std::size_t count = CountOf(out->pilots, held_out); judged.size() != count) {
      list.Refuse(absl::StrCat("a list of ", count, ", as curves has them"));
    }
    for (const Node& one : judged) {
      CalibrationJudged row = JudgedOf(one, rule, held_out, all);
      // Of merges over single steps the error that was fitted is the one here.
      if (held_out || !row.trained.empty()) out->judged.push_back(std::move(row));
    }
  }
  FillScores(root, rule, out);
  for (const Node& plan : root.At("plans").Items(2)) out->plans.push_back(PlanOf(plan, all));
  for (const char* key : {"output", "arrays", "plan"}) {
    if (root.Has(key)) out->files.push_back(root.At(key).Text());
  }
}

std::string Bytes(std::uintmax_t count) {
  return count == 1 ? "1 byte" : absl::StrCat(count, " bytes");
}
// Of `key = "value"` before the first table; empty where there is none.
std::string TopValue(const std::string& toml, const std::string& key) {
  for (absl::string_view line : absl::StrSplit(toml, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (absl::StartsWith(line, "[")) return "";
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    if (absl::StripAsciiWhitespace(parts.first) != key) continue;
    const absl::string_view value = absl::StripAsciiWhitespace(parts.second);
    if (value.size() > 2) return std::string(value.substr(1, value.size() - 2));
  }
  return "";
}

}  // namespace

bool IsCalibration(const std::string& path) {
  if (!absl::EndsWith(path, ".toml")) return false;
  // Other files are neither this nor runs, which CheckNoFile says.
  const absl::StatusOr<std::string> text = ReadFile(path);
  return text.ok() && (absl::StrContains(*text, "kind = \"measured\"") ||
                       absl::StrContains(*text, "kind = 'measured'"));
}

absl::Status CheckNoFile(const std::string& path) {
  std::error_code ec;
  const std::filesystem::file_status status = std::filesystem::status(path, ec);
  if (ec || !std::filesystem::exists(status) || std::filesystem::is_directory(status)) {
    return absl::OkStatus();
  }
  const auto refuse = [&](const std::string& is, const std::string& next) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is ", is,
        ", expected the folder of a finished run (mergeplan distill -o FOLDER makes it) or "
        "measured tables (mergeplan calibrate -o FILE.toml writes them); ",
        next));
  };
  if (!std::filesystem::is_regular_file(status)) return refuse("no folder", "give one of those");
  // The tables that it stands beside, or the run that it is in.
  for (const char* end : {".answer.json", ".pilots.json", ".npz"}) {
    if (!absl::EndsWith(path, end)) continue;
    const std::string tables =
        absl::StrCat(path.substr(0, path.size() - std::string_view(end).size()), ".toml");
    if (IsCalibration(tables)) {
      return refuse("a file that mergeplan calibrate writes beside its tables",
                    absl::StrCat("give the tables, ", tables));
    }
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (std::filesystem::exists(folder / "run.toml", ec)) {
    return refuse("a file in the folder of a run",
                  absl::StrCat("give the folder, ", folder.empty() ? "." : folder.string()));
  }
  std::string text;
  {
    // Large arrays are not read to say that they are some.
    constexpr std::streamsize kHead = 1 << 16;
    std::ifstream file(path, std::ios::binary);
    text.resize(static_cast<std::size_t>(kHead));
    file.read(text.data(), kHead);
    if (file.bad() || !file.is_open()) return ReadFile(path).status();
    text.resize(static_cast<std::size_t>(file.gcount()));
  }
  const std::string again =
      absl::StrCat("give one of those, or where tables stood in it, ", kNextStep);
  if (text.empty()) return refuse("an empty file", again);
  if (absl::StartsWith(text, "PK")) return refuse("a file of arrays (.npz)", "give one of those");
  if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "{")) {
    return refuse("a file of JSON", "give one of those");
  }
  const std::string known = KnownKind(TopValue(text, "kind"), [&](std::string_view key) {
    return absl::StrContains(absl::StrCat("\n", text),
                             absl::StrCat("\n", std::string(key), " =")) ||
           absl::StrContains(text, absl::StrCat("[", std::string(key), "]"));
  });
  if (!known.empty()) return refuse(known, "give one of those");
  return refuse(absl::StrCat("a file of ", Bytes(std::filesystem::file_size(path, ec)),
                             " that is none of mergeplan's"),
                again);
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
  const Json json = Json::parse(*text, nullptr, false);
  if (json.is_discarded()) {
    return absl::DataLossError(absl::StrCat(answer, ": is no whole JSON (", Bytes(text->size()),
                                            "), expected what mergeplan calibrate writes there; ",
                                            kNextStep));
  }
  absl::Status problem;
  const Node root(&json, "", &problem);
  const std::string of = root.At("output_sha256").Text();
  if (problem.ok() && of != hash) {
    return absl::DataLossError(
        absl::StrCat(answer, ": belongs to other tables than those in ", path,
                     "; run calibrate again with --resume, or bring both files back"));
  }
  Fill(root, &out);
  if (problem.ok()) return out;
  return absl::DataLossError(absl::StrCat(answer, ": ", std::string(problem.message())));
}

}  // namespace mergeplan::cli
