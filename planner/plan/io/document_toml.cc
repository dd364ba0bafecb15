#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz.h"
#include "planner/plan/io/document.h"
#include "planner/plan/io/document_check.h"
#include "planner/plan/io/document_read.h"
#include "planner/plan/io/node.h"

namespace mergeplan {

using namespace plan_io;  // what these files share

namespace {

// The shortest digits that read back as the same number; TOML wants a point or an exponent.
std::string Text(double number) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  std::string out(digits.data(), end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

std::string Text(const std::vector<double>& numbers) {
  std::string out = "[";
  for (const double number : numbers) {
    absl::StrAppend(&out, out.size() > 1 ? ", " : "", Text(number));
  }
  return out + "]";
}

std::string Text(Range range) { return absl::StrCat("[", range.first, ", ", range.last, "]"); }

std::string Text(const std::vector<Range>& ranges) {
  std::string out = "[";
  for (const Range& range : ranges) {
    absl::StrAppend(&out, out.size() > 1 ? ", " : "", Text(range));
  }
  return out + "]";
}

std::string Text(const std::optional<PlanCosts>& costs) {
  if (!costs) return "";
  return absl::StrCat(", rounds = ", costs->rounds, ", teacher_calls = ", costs->teacher_calls,
                      ", student_calls = ", costs->student_calls);
}

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", std::string(1, c));
    } else if (byte < 0x20 || byte == 0x7F) {
      absl::StrAppendFormat(&out, "\\u%04X", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// Writes the text of a document and gathers the arrays that are too long for it.
class TomlText {
 public:
  TomlText(const PlanDocument& document, bool all_inline) : d_(document), all_inline_(all_inline) {}

  // Everything but the table [arrays], which needs the name of the .npz.
  std::string Run() {
    Heading();
    Question();
    Merges();
    Certificate();
    return std::move(out_);
  }
  const std::vector<std::string>& stored() const { return stored_; }
  const NpzWriter& npz() const { return npz_; }

 private:
  void Line(std::string_view key, const std::string& value) {
    absl::StrAppend(&out_, std::string(key), " = ", value, "\n");
  }
  void Array(std::string_view key, const std::vector<double>& numbers) {
    if (all_inline_ || numbers.size() <= kLongestInlineArray) {
      Line(key, Text(numbers));
      return;
    }
    stored_.emplace_back(key);
    npz_.Add(std::string(key), {static_cast<std::int64_t>(numbers.size())}, numbers);
  }

  // A table of T rows.
  void Table(std::string_view key, const std::vector<double>& numbers) {
    const auto d = static_cast<size_t>(d_.tables->dimensions);
    if (!all_inline_ && numbers.size() > kLongestInlineArray) {
      stored_.emplace_back(key);
      npz_.Add(std::string(key), {d_.tables->steps, d_.tables->dimensions}, numbers);
      return;
    }
    std::string out;
    for (size_t at = 0; at < numbers.size(); at += d) {
      absl::StrAppend(
          &out, at > 0 ? ", " : "",
          Text(std::vector<double>(numbers.begin() + static_cast<std::ptrdiff_t>(at),
                                   numbers.begin() + static_cast<std::ptrdiff_t>(at + d))));
    }
    Line(key, absl::StrCat("[", out, "]"));
  }

  void Heading() {
    const Plan& plan = d_.plan;
    std::string shape = plan.ToString();
    if (shape.size() > 80) shape = shape.substr(0, 77) + "...";
    absl::StrAppendFormat(
        &out_,
        "# A merge schedule (mergeplan): %d teacher steps become %d student step%s by %d merge%s "
        "in %d round%s.\n# %s\n"
        "# Error %.6g against %s, %s; no plan is below %.6g.\n",
        plan.teacher_steps(), plan.student_steps(), plan.student_steps() == 1 ? "" : "s",
        plan.size(), plan.size() == 1 ? "" : "s", plan.rounds(), plan.rounds() == 1 ? "" : "s",
        shape, d_.objective,
        d_.tables ? "the target given"
                  : absl::StrCat("the ", std::string(ToString(d_.reference)), " reference"),
        d_.status, d_.lower_bound);
    for (const StrategyFigures& s : d_.strategies) {
      if (s.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") != s.name.npos) {
        continue;
      }
      absl::StrAppendFormat(&out_, "#   %-12s %.6g", s.name, s.objective);
      if (s.objective_equal_total_time) {
        absl::StrAppendFormat(&out_, " (at equal total time %.6g)", *s.objective_equal_total_time);
      }
      out_ += "\n";
    }
    out_ +=
        "# Merges, blocks and everything above [certificate] may be edited by hand; the figures "
        "are then\n# computed afresh and nothing is proven any more. [first, last] are steps, 1 "
        "is the cleanest.\n";
  }

  void Question() {
    Line("format", absl::StrCat(kPlanFormat));
    out_ += "\n# The question.\n";
    if (d_.tables) {
      Tables(*d_.tables);
      return;
    }
    Line("schedule", Quoted(d_.schedule_spec));
    Line("teacher_steps", absl::StrCat(d_.plan.teacher_steps()));
    Line("student_steps", absl::StrCat(d_.plan.student_steps()));
    Line("init", Quoted(ToString(d_.init)));
    Line("reference", Quoted(ToString(d_.reference)));
    Line("space", Quoted(ToString(d_.space)));
    Limits();
    if (d_.budget.sgd) {
      Line("lr", Text(d_.budget.lr));
      Line("iterations", absl::StrCat(d_.budget.iterations));
    } else {
      Line("train_time", Text(d_.budget.train_time));
    }
    Line("batch", absl::StrCat(d_.budget.batch));
    Line("feature_norm", Text(d_.budget.feature_norm));
    Line("input", Quoted(d_.input));
    Line("input_sha256", Quoted(d_.input_sha256));
    Line("basis", Quoted(d_.basis));
    Line("dimensions", absl::StrCat(d_.dimensions()));
    Array("variances", d_.variances);
    if (!d_.weights.empty()) Array("weights", d_.weights);
    Line("data_scale", Text(d_.data_scale));
    Array("alpha", d_.alpha);
    Array("sigma", d_.sigma);
  }

  void Limits() {
    if (d_.max_merges > 0) Line("max_merges", absl::StrCat(d_.max_merges));
    if (d_.max_rounds > 0) Line("max_rounds", absl::StrCat(d_.max_rounds));
  }

  void Tables(const ModelTables& tables) {
    Line("teacher_steps", absl::StrCat(tables.steps));
    Line("student_steps", absl::StrCat(d_.plan.student_steps()));
    Line("dimensions", absl::StrCat(tables.dimensions));
    Line("space", Quoted(ToString(d_.space)));
    Limits();
    Line("input", Quoted(d_.input));
    Table("A", tables.a);
    Table("gamma", tables.gamma);
    if (!tables.p.empty()) Table("p", tables.p);
    if (!tables.q.empty()) Table("q", tables.q);
    Array("target", tables.tau);
    if (!tables.weights.empty()) Array("weights", tables.weights);
  }

  void Merges() {
    out_ += "\n# The plan: its final blocks, and the merges, children before parents.\n";
    Line("blocks", Text(d_.plan.BlockRanges()));
    out_ += "merges = [\n";
    for (const Merge& merge : d_.plan.merges()) {
      std::vector<Range> children;
      children.reserve(merge.children.size());
      for (const int child : merge.children) children.push_back(d_.plan.range(child));
      absl::StrAppend(&out_, "  { first = ", merge.first, ", last = ", merge.last,
                      ", round = ", merge.round, ", children = ", Text(children), " },\n");
    }
    out_ += "]\n";
  }

  void Certificate() {
    out_ += "\n[certificate]\n";
    Line("status", Quoted(d_.status));
    Line("guarantee", Quoted(d_.guarantee));
    Line("objective", Text(d_.objective));
    Line("lower_bound", Text(d_.lower_bound));
    Line("gap", Text(d_.gap()));
    Line("tolerance", Text(d_.tolerance));
    if (d_.objective_surrogate) Line("objective_surrogate", Text(*d_.objective_surrogate));
    Line("objective_teacher", Text(d_.objective_teacher));
    if (d_.objective_equal_total_time)
      Line("objective_equal_total_time", Text(*d_.objective_equal_total_time));
    Line("merges_trained", absl::StrCat(d_.plan.size()));
    const PlanCosts costs = CostsOf(d_.plan);
    Line("rounds", absl::StrCat(costs.rounds));
    Line("teacher_calls", absl::StrCat(costs.teacher_calls));
    Line("student_calls", absl::StrCat(costs.student_calls));
    Line("seconds", Text(d_.seconds));
    Line("fingerprint", Quoted(Fingerprint(d_)));
    Array("value", d_.value);
    Array("tau", d_.tau);
    out_ += "\n[certificate.strategies]\n";
    for (const StrategyFigures& s : d_.strategies) {
      const bool bare =
          s.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == s.name.npos;
      Line(bare ? s.name : Quoted(s.name),
           absl::StrCat("{ objective = ", Text(s.objective),
                        s.objective_equal_total_time
                            ? absl::StrCat(", objective_equal_total_time = ",
                                           Text(*s.objective_equal_total_time))
                            : "",
                        Text(s.costs), ", merges_trained = ", s.merges_trained, " }"));
    }
  }

  const PlanDocument& d_;
  const bool all_inline_;
  std::string out_;
  std::vector<std::string> stored_;
  NpzWriter npz_;
};

// STEM-0123456789ab.npz
std::string NpzName(const std::string& path, const std::string& sha256) {
  return absl::StrCat(std::filesystem::path(path).stem().string(), "-", sha256.substr(0, 12),
                      ".npz");
}

std::string Beside(const std::string& path, const std::string& name) {
  return (std::filesystem::path(path).parent_path() / name).string();
}

// The .npz that the plan file at `path` names, where it is one that WritePlanToml wrote for it;
// else empty.
std::string OldNpz(const std::string& path) {
  const auto text = ReadFile(path);
  if (!text.ok()) return "";
  const auto root = ParseToml(*text, path);
  const Node* arrays = root.ok() ? root->Find("arrays") : nullptr;
  const Node* file = arrays != nullptr ? arrays->Find("file") : nullptr;
  const Node* sha256 = arrays != nullptr ? arrays->Find("sha256") : nullptr;
  const auto* name = file != nullptr ? std::get_if<std::string>(&file->value) : nullptr;
  const auto* hash = sha256 != nullptr ? std::get_if<std::string>(&sha256->value) : nullptr;
  if (name == nullptr || hash == nullptr || *name != NpzName(path, *hash)) return "";
  const auto actual = Sha256OfFile(Beside(path, *name));
  return actual.ok() && *actual == *hash ? *name : "";
}

absl::StatusOr<PlanDocument> ParsePlanToml(const std::string& text, const std::string& path) {
  MP_ASSIGN_OR_RETURN(const Node root, ParseToml(text, path));
  return ReadDocument(root, path, PlanForm::kToml);
}

}  // namespace

absl::Status WritePlanToml(const PlanDocument& document, const std::string& path) {
  MP_RETURN_IF_ERROR(CheckForWriting(document, path));
  const PlanDocument d = Normalized(document);
  // A pipe or a device gets one stream of text and no neighbour.
  std::error_code ec;
  const bool is_file =
      !std::filesystem::exists(path, ec) || std::filesystem::is_regular_file(path, ec);
  TomlText text(d, /*all_inline=*/!is_file);
  std::string toml = text.Run();
  std::string npz_name;
  const std::string old = is_file ? OldNpz(path) : "";
  if (!text.stored().empty()) {
    MP_ASSIGN_OR_RETURN(const std::string bytes, text.npz().Bytes());
    const std::string sha256 = Sha256(bytes);
    npz_name = NpzName(path, sha256);
    std::string names;
    for (const std::string& name : text.stored()) {
      absl::StrAppend(&names, names.empty() ? "" : ", ", Quoted(name));
    }
    absl::StrAppend(&toml, "\n# The long arrays, in a file beside this one.\n[arrays]\nfile = ",
                    Quoted(npz_name), "\nsha256 = ", Quoted(sha256), "\nnames = [", names, "]\n");
    MP_RETURN_IF_ERROR(WriteFileAtomically(Beside(path, npz_name), bytes));
  }
  MP_RETURN_IF_ERROR(WriteFileAtomically(path, toml));
  if (!old.empty() && old != npz_name) ::unlink(Beside(path, old).c_str());
  return absl::OkStatus();
}

absl::StatusOr<PlanDocument> ReadPlanToml(const std::string& path) {
  // Somebody may replace the plan between our reading of the TOML and of its .npz, which then is
  // gone. The TOML that stands there now names one that fits it, so look again. Comparing the texts
  // would not do: the plan may have been replaced twice.
  constexpr int kAttempts = 200;
  for (int attempt = 1;; ++attempt) {
    MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    absl::StatusOr<PlanDocument> document = ParsePlanToml(text, path);
    const bool npz_is_gone =
        absl::IsNotFound(document.status()) || absl::IsDataLoss(document.status());
    if (!npz_is_gone || attempt == kAttempts) return document;
  }
}

}  // namespace mergeplan
