#include <toml++/toml.h>

#include <array>
#include <charconv>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/file.h"
#include "planner/base/file_kind.h"
#include "planner/base/status_macros.h"
#include "planner/measured/model.h"
#include "planner/measured/tables.h"

namespace mergeplan {
namespace {

constexpr std::int64_t kFormat = 1;
constexpr char kKind[] = "measured";

// ---- Writing.

// The shortest digits that read back as the same number; TOML wants a point or an exponent.
std::string Number(double number) {
  std::array<char, 40> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  std::string out(digits.data(), end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

std::string Quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::toml_formatter(toml::value<std::string>(text), toml::format_flags::none);
  return out.str();
}

std::string TableText(const char* name, const char* meaning,
                      const std::vector<MeasuredEntry>& entries) {
  std::string out = absl::StrCat("\n# ", meaning, "\n", name, " = [\n");
  for (const MeasuredEntry& e : entries) {
    absl::StrAppend(&out, "  { first = ", e.first, ", last = ", e.last);
    if (e.start != 0) absl::StrAppend(&out, ", start = ", e.start);
    if (e.updates != 0) absl::StrAppend(&out, ", updates = ", e.updates);
    absl::StrAppend(&out, ", value = ", Number(e.value), ", low = ", Number(e.low),
                    ", high = ", Number(e.high), " },\n");
  }
  return out + "]\n";
}

std::string TomlText(const MeasuredTables& t) {
  return absl::StrCat(
      "# What was measured of a network's merges (mergeplan). Errors are root mean squares; low "
      "and "
      "high\n# are the interval that each value is known to lie in. Step 1 is the cleanest.\n",
      "format = ", kFormat, "\nkind = \"", kKind, "\"\nteacher_steps = ", t.teacher_steps,
      "\ncombine = \"", std::string(ToString(t.combine)), "\"\nsource = ", Quoted(t.source), "\n",
      TableText("gain", "By how much the operators of steps first..last enlarge an error.", t.gain),
      TableText("distance",
                "Between the start of the merge [first, last] and its target; start: the first "
                "step of its noisiest child.",
                t.distance),
      TableText("residual", "What is left of the distance after so many updates.", t.residual),
      TableText("floor", "The error that training does not get below.", t.floor));
}

// ---- Reading.

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  absl::Status Error(const toml::node& at, const std::string& key,
                     const std::string& message) const {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ":", at.source().begin.line, ": ", key, ": ", message));
  }
  absl::Status Mistyped(const toml::node& at, const std::string& key, const char* expected) const {
    std::ostringstream kind;
    kind << at.type();
    return Error(at, key, absl::StrCat("is of type ", kind.str(), "; expected ", expected));
  }
  absl::Status CheckKeys(const toml::table& table, const std::string& prefix,
                         absl::Span<const std::string_view> known) const {
    for (const auto& [key, node] : table) {
      bool found = false;
      for (const std::string_view word : known) found = found || word == key.str();
      if (found) continue;
      std::string words;
      for (const std::string_view word : known) {
        absl::StrAppend(&words, words.empty() ? "" : ", ", std::string(word));
      }
      return Error(node, absl::StrCat(prefix, std::string(key.str())),
                   absl::StrCat("unknown key; expected one of ", words));
    }
    return absl::OkStatus();
  }
  absl::StatusOr<const toml::node*> Require(const toml::table& table, const std::string& prefix,
                                            const char* key) const {
    if (const toml::node* node = table.get(key); node != nullptr) return node;
    return Error(table, absl::StrCat(prefix, key), "is missing");
  }

  absl::StatusOr<std::int64_t> Integer(const toml::node& node, const std::string& key,
                                       std::int64_t least, std::int64_t most) const {
    if (!node.is_integer()) return Mistyped(node, key, "a whole number");
    const std::int64_t number = *node.value<std::int64_t>();
    if (number >= least && number <= most) return number;
    return Error(node, key, absl::StrCat("is ", number, "; expected ", least, "..", most));
  }
  absl::StatusOr<double> Number(const toml::node& node, const std::string& key) const {
    if (!node.is_number()) return Mistyped(node, key, "a number");
    return *node.value<double>();
  }
  absl::StatusOr<std::string> String(const toml::node& node, const std::string& key) const {
    if (!node.is_string()) return Mistyped(node, key, "a string");
    return *node.value<std::string>();
  }

  absl::StatusOr<MeasuredEntry> Entry(const toml::node& node, const std::string& name, bool start,
                                      bool updates) const {
    const toml::table* table = node.as_table();
    if (table == nullptr) return Mistyped(node, name, "a table");
    const std::string prefix = name + ".";
    std::vector<std::string_view> known{"first", "last", "value", "low", "high"};
    if (start) known.emplace_back("start");
    if (updates) known.emplace_back("updates");
    MP_RETURN_IF_ERROR(CheckKeys(*table, prefix, known));
    MeasuredEntry out;
    for (const auto& [key, target] : {std::pair{"first", &out.first}, {"last", &out.last}}) {
      MP_ASSIGN_OR_RETURN(const toml::node* step, Require(*table, prefix, key));
      MP_ASSIGN_OR_RETURN(const std::int64_t number,
                          Integer(*step, prefix + key, 1, kMostMeasuredSteps));
      *target = static_cast<int>(number);
    }
    if (const toml::node* step = table->get("start"); step != nullptr) {
      MP_ASSIGN_OR_RETURN(const std::int64_t number,
                          Integer(*step, prefix + "start", 1, kMostMeasuredSteps));
      out.start = static_cast<int>(number);
    }
    if (updates) {
      MP_ASSIGN_OR_RETURN(const toml::node* count, Require(*table, prefix, "updates"));
      MP_ASSIGN_OR_RETURN(out.updates, Integer(*count, prefix + "updates", 1, kMostUpdates));
    }
    MP_ASSIGN_OR_RETURN(const toml::node* value, Require(*table, prefix, "value"));
    MP_ASSIGN_OR_RETURN(out.value, Number(*value, prefix + "value"));
    out.low = out.high = out.value;
    for (const auto& [key, target] : {std::pair{"low", &out.low}, {"high", &out.high}}) {
      const toml::node* end = table->get(key);
      if (end == nullptr) continue;
      MP_ASSIGN_OR_RETURN(*target, Number(*end, prefix + key));
    }
    return out;
  }

  absl::Status Entries(const toml::table& root, const char* key, bool start, bool updates,
                       std::vector<MeasuredEntry>& out) const {
    MP_ASSIGN_OR_RETURN(const toml::node* node, Require(root, "", key));
    const toml::array* list = node->as_array();
    if (list == nullptr) return Mistyped(*node, key, "a list of tables");
    for (const toml::node& item : *list) {
      MP_ASSIGN_OR_RETURN(MeasuredEntry entry,
                          Entry(item, absl::StrCat(key, "[", out.size(), "]"), start, updates));
      out.push_back(entry);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<MeasuredTables> Read(const toml::table& root) const {
    const std::string other = OtherKind(kKind, root["kind"].value<std::string>().value_or(""),
                                        [&](std::string_view key) { return root.contains(key); });
    if (!other.empty()) return absl::InvalidArgumentError(absl::StrCat(path_, ": ", other));
    MP_RETURN_IF_ERROR(CheckKeys(root, "",
                                 {"format", "kind", "teacher_steps", "combine", "source", "gain",
                                  "distance", "residual", "floor"}));
    MP_ASSIGN_OR_RETURN(const toml::node* format, Require(root, "", "format"));
    MP_RETURN_IF_ERROR(Integer(*format, "format", kFormat, kFormat).status());
    MP_ASSIGN_OR_RETURN(const toml::node* kind, Require(root, "", "kind"));
    MP_ASSIGN_OR_RETURN(const std::string word, String(*kind, "kind"));
    if (word != kKind) {
      return Error(*kind, "kind", absl::StrCat("is \"", word, "\"; expected \"", kKind, "\""));
    }
    MeasuredTables out;
    MP_ASSIGN_OR_RETURN(const toml::node* steps, Require(root, "", "teacher_steps"));
    MP_ASSIGN_OR_RETURN(const std::int64_t number,
                        Integer(*steps, "teacher_steps", 2, kMostMeasuredSteps));
    out.teacher_steps = static_cast<int>(number);
    if (const toml::node* combine = root.get("combine"); combine != nullptr) {
      MP_ASSIGN_OR_RETURN(const std::string rule, String(*combine, "combine"));
      const absl::StatusOr<Combine> parsed = ParseCombine(rule);
      if (!parsed.ok()) {
        return Error(*combine, "combine", absl::StrCat("is \"", rule, "\"; expected sum or rms"));
      }
      out.combine = *parsed;
    }
    if (const toml::node* source = root.get("source"); source != nullptr) {
      MP_ASSIGN_OR_RETURN(out.source, String(*source, "source"));
    }
    MP_RETURN_IF_ERROR(Entries(root, "gain", false, false, out.gain));
    MP_RETURN_IF_ERROR(Entries(root, "distance", true, false, out.distance));
    MP_RETURN_IF_ERROR(Entries(root, "residual", false, true, out.residual));
    MP_RETURN_IF_ERROR(Entries(root, "floor", false, false, out.floor));
    return out;
  }

 private:
  const std::string& path_;
};

}  // namespace

absl::Status WriteMeasured(const MeasuredTables& tables, const std::string& path) {
  if (const absl::Status status = MeasuredModel::Create(tables).status(); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": cannot be written, ", status.message()));
  }
  return WriteFileAtomically(path, TomlText(tables));
}

absl::StatusOr<MeasuredTables> ReadMeasured(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ":", error.source().begin.line, ":", error.source().begin.column, ": ",
        std::string(error.description()), "; expected a TOML file of measured tables"));
  }
  MP_ASSIGN_OR_RETURN(MeasuredTables tables, Reader(path).Read(root));
  if (const absl::Status status = MeasuredModel::Create(tables).status(); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", status.message()));
  }
  return tables;
}

}  // namespace mergeplan
