#include "plugins/host/manifest.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "plugins/abi/mergeplan_plugin.h"
#include "plugins/host/border.h"
#include "toml++/toml.h"

namespace mergeplan {
namespace {

constexpr int kFormat = 1;
constexpr std::string_view kTraits[] = {"predicts-x0",     "predicts-epsilon", "predicts-v",
                                        "gives-gradients", "data-free",        "has-spectrum"};

bool IsName(std::string_view text) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !text.empty() && text.size() <= 64 && text.front() >= 'a' && text.front() <= 'z' &&
         std::all_of(text.begin(), text.end(), good);
}

// One table of the manifest: hands out keys with their types and knows where an error is.
class Table {
 public:
  Table(const toml::table& table, std::string path, std::string prefix)
      : table_(table), path_(std::move(path)), prefix_(std::move(prefix)) {}

  absl::Status Bad(std::string_view key, std::string_view found, std::string_view expected) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": ", prefix_, Str(key), ": found ",
                                                   Str(found), ", expected ", Str(expected)));
  }

  absl::Status OnlyKeys(std::initializer_list<std::string_view> known) const {
    for (const auto& [key, node] : table_) {
      if (std::find(known.begin(), known.end(), key.str()) == known.end()) {
        std::vector<std::string> words(known.begin(), known.end());
        return absl::InvalidArgumentError(absl::StrCat(
            path_, ":", node.source().begin.line, ": unknown key \"", prefix_,
            border::OneLine(key.str()), "\", expected one of ", absl::StrJoin(words, ", ")));
      }
    }
    return absl::OkStatus();
  }

  const toml::node* Find(std::string_view key) const { return table_.get(key); }

  absl::StatusOr<std::string> Text(std::string_view key) const {
    const toml::node* node = Find(key);
    if (node == nullptr) return Bad(key, "nothing", "a text");
    if (!node->is_string()) return Bad(key, Kind(*node), "a text");
    std::string text = node->as_string()->get();
    if (text.find('\0') != std::string::npos) return Bad(key, "a text with a NUL", "one without");
    return text;
  }

  absl::StatusOr<std::uint32_t> Number(std::string_view key,
                                       std::optional<std::uint32_t> otherwise = {}) const {
    const toml::node* node = Find(key);
    if (node == nullptr && otherwise) return *otherwise;
    constexpr std::string_view kExpected = "an integer from 0 to 1000000";
    if (node == nullptr) return Bad(key, "nothing", kExpected);
    if (!node->is_integer()) return Bad(key, Kind(*node), kExpected);
    const std::int64_t value = node->as_integer()->get();
    if (value < 0 || value > 1'000'000) return Bad(key, absl::StrCat(value), kExpected);
    return static_cast<std::uint32_t>(value);
  }

  static std::string Kind(const toml::node& node) {
    switch (node.type()) {
      case toml::node_type::string:
        return "a text";
      case toml::node_type::integer:
        return "an integer";
      case toml::node_type::floating_point:
        return "a real number";
      case toml::node_type::boolean:
        return "true or false";
      case toml::node_type::array:
        return "a list";
      case toml::node_type::table:
        return "a table";
      default:
        return "a date or time";
    }
  }
  static std::string Str(std::string_view text) { return std::string(text); }

 private:
  const toml::table& table_;
  std::string path_;
  std::string prefix_;
};

std::optional<double> AsNumber(const toml::node& node) {
  if (node.is_integer()) return static_cast<double>(node.as_integer()->get());
  if (node.is_floating_point()) return node.as_floating_point()->get();
  return std::nullopt;
}

absl::StatusOr<std::optional<double>> Bound(const Table& table, std::string_view key,
                                            ParameterType type) {
  const toml::node* node = table.Find(key);
  if (node == nullptr) return std::optional<double>();
  if (type != ParameterType::kInteger && type != ParameterType::kReal) {
    return table.Bad(key, "a bound", "none for this type");
  }
  const std::optional<double> number = AsNumber(*node);
  if (!number || !std::isfinite(*number) ||
      (type == ParameterType::kInteger && !node->is_integer())) {
    return table.Bad(key, number ? absl::StrFormat("%g", *number) : Table::Kind(*node),
                     type == ParameterType::kInteger ? "an integer" : "a finite number");
  }
  return number;
}

absl::StatusOr<ParameterType> ParseType(const Table& table) {
  MP_ASSIGN_OR_RETURN(const std::string word, table.Text("type"));
  for (ParameterType type : {ParameterType::kInteger, ParameterType::kReal, ParameterType::kFlag,
                             ParameterType::kText}) {
    if (ToString(type) == word) return type;
  }
  return table.Bad("type", absl::StrCat("\"", border::OneLine(word), "\""),
                   "integer, real, flag or text");
}

// Is the value one that the schema allows?
bool Allows(const ParameterSpec& spec, const std::string& value) {
  const char* begin = value.data();
  const char* end = begin + value.size();
  double number = 0;
  switch (spec.type) {
    case ParameterType::kText:
      return value.find('\0') == std::string::npos;
    case ParameterType::kFlag:
      return value == "true" || value == "false";
    case ParameterType::kInteger: {
      std::int64_t integer = 0;
      const auto [stop, failure] = std::from_chars(begin, end, integer);
      if (failure != std::errc() || stop != end) return false;
      number = static_cast<double>(integer);
      break;
    }
    case ParameterType::kReal: {
      const auto [stop, failure] = std::from_chars(begin, end, number);
      if (failure != std::errc() || stop != end || !std::isfinite(number)) return false;
      break;
    }
  }
  return !(spec.minimum && number < *spec.minimum) && !(spec.maximum && number > *spec.maximum);
}

absl::StatusOr<std::optional<std::string>> Default(const Table& table, const ParameterSpec& spec) {
  const toml::node* node = table.Find("default");
  if (node == nullptr) return std::optional<std::string>();
  std::string text;
  bool fits = false;
  switch (spec.type) {
    case ParameterType::kInteger:
      if ((fits = node->is_integer())) text = absl::StrCat(node->as_integer()->get());
      break;
    case ParameterType::kReal:
      if (const std::optional<double> number = AsNumber(*node)) {
        char buffer[64];
        const auto [stop, failure] = std::to_chars(buffer, buffer + sizeof(buffer), *number);
        fits = failure == std::errc();
        text.assign(buffer, stop);
      }
      break;
    case ParameterType::kFlag:
      if ((fits = node->is_boolean())) text = node->as_boolean()->get() ? "true" : "false";
      break;
    case ParameterType::kText:
      if ((fits = node->is_string())) text = node->as_string()->get();
      break;
  }
  if (!fits) {
    return table.Bad("default", Table::Kind(*node),
                     absl::StrCat("a value of type ", Table::Str(ToString(spec.type))));
  }
  if (!Allows(spec, text)) {
    return table.Bad("default", absl::StrCat("\"", border::OneLine(text), "\""),
                     ValuesInWords(spec));
  }
  return std::optional<std::string>(text);
}

absl::StatusOr<ParameterSpec> ReadParameter(const Table& table) {
  MP_RETURN_IF_ERROR(table.OnlyKeys({"name", "type", "default", "minimum", "maximum", "help"}));
  ParameterSpec spec;
  MP_ASSIGN_OR_RETURN(spec.name, table.Text("name"));
  if (!IsName(spec.name)) {
    return table.Bad("name", absl::StrCat("\"", border::OneLine(spec.name), "\""),
                     "a-z, then a-z 0-9 - _, 64 at most");
  }
  MP_ASSIGN_OR_RETURN(spec.type, ParseType(table));
  MP_ASSIGN_OR_RETURN(spec.minimum, Bound(table, "minimum", spec.type));
  MP_ASSIGN_OR_RETURN(spec.maximum, Bound(table, "maximum", spec.type));
  if (spec.minimum && spec.maximum && *spec.minimum > *spec.maximum) {
    return table.Bad("minimum", absl::StrFormat("%g", *spec.minimum),
                     absl::StrFormat("at most the maximum %g", *spec.maximum));
  }
  MP_ASSIGN_OR_RETURN(spec.default_value, Default(table, spec));
  MP_ASSIGN_OR_RETURN(spec.help, table.Text("help"));
  spec.help = border::OneLine(spec.help);
  return spec;
}

absl::StatusOr<std::uint64_t> ReadNeeds(const Table& table) {
  std::uint64_t needs = 0;
  const toml::node* node = table.Find("teacher_needs");
  if (node == nullptr) return needs;
  constexpr std::string_view kKey = "teacher_needs";
  const std::string expected =
      absl::StrCat("a list of ", absl::StrJoin(TeacherTraitNames(~std::uint64_t{0}), ", "));
  if (!node->is_array()) return table.Bad(kKey, Table::Kind(*node), expected);
  for (const toml::node& item : *node->as_array()) {
    if (!item.is_string()) return table.Bad(kKey, Table::Kind(item), expected);
    const std::string& word = item.as_string()->get();
    const auto* const found = std::find(std::begin(kTraits), std::end(kTraits), word);
    if (found == std::end(kTraits)) {
      return table.Bad(kKey, absl::StrCat("\"", border::OneLine(word), "\""), expected);
    }
    needs |= std::uint64_t{1} << (found - std::begin(kTraits));
  }
  return needs;
}

absl::StatusOr<Manifest> FromTable(const toml::table& root, const std::string& path) {
  const Table table(root, path, "");
  // The format first: a later one may have keys that this host does not know.
  MP_ASSIGN_OR_RETURN(const std::uint32_t format, table.Number("format"));
  if (format != kFormat) {
    return table.Bad("format", absl::StrCat(format), absl::StrCat(kFormat));
  }
  MP_RETURN_IF_ERROR(
      table.OnlyKeys({"format", "name", "version", "description", "library", "abi_major",
                      "abi_minor", "abi_minor_needed", "teacher_needs", "parameters"}));
  Manifest manifest;
  manifest.path = path;
  MP_ASSIGN_OR_RETURN(manifest.name, table.Text("name"));
  if (!IsName(manifest.name)) {
    return table.Bad("name", absl::StrCat("\"", border::OneLine(manifest.name), "\""),
                     "a-z, then a-z 0-9 - _, 64 at most");
  }
  if (const std::string stem = std::filesystem::path(path).stem().string(); stem != manifest.name) {
    return table.Bad("name", absl::StrCat("\"", manifest.name, "\""),
                     absl::StrCat("\"", border::OneLine(stem), "\", as the file is called"));
  }
  MP_ASSIGN_OR_RETURN(manifest.version, table.Text("version"));
  if (manifest.version.empty() || manifest.version != border::OneLine(manifest.version)) {
    return table.Bad("version", absl::StrCat("\"", border::OneLine(manifest.version), "\""),
                     "a text in one line");
  }
  MP_ASSIGN_OR_RETURN(manifest.description, table.Text("description"));
  manifest.description = border::OneLine(manifest.description);
  MP_ASSIGN_OR_RETURN(const std::string library, table.Text("library"));
  if (library.empty() || library.find('/') != std::string::npos || library == "." ||
      library == "..") {
    return table.Bad("library", absl::StrCat("\"", border::OneLine(library), "\""),
                     "the name of a file beside the manifest, without a path");
  }
  // Always with a '/': a bare name would send dlopen to the system's folders.
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  manifest.library = ((folder.empty() ? "." : folder) / library).string();
  MP_ASSIGN_OR_RETURN(manifest.abi_major, table.Number("abi_major"));
  MP_ASSIGN_OR_RETURN(manifest.abi_minor_needed, table.Number("abi_minor_needed", 0));
  MP_ASSIGN_OR_RETURN(manifest.abi_minor, table.Number("abi_minor", manifest.abi_minor_needed));
  if (manifest.abi_minor_needed > manifest.abi_minor) {
    return table.Bad("abi_minor_needed", absl::StrCat(manifest.abi_minor_needed),
                     absl::StrCat("at most abi_minor, ", manifest.abi_minor));
  }
  MP_ASSIGN_OR_RETURN(manifest.teacher_needs, ReadNeeds(table));
  if (const toml::node* list = table.Find("parameters"); list != nullptr) {
    if (!list->is_array()) return table.Bad("parameters", Table::Kind(*list), "[[parameters]]");
    for (const toml::node& item : *list->as_array()) {
      if (!item.is_table()) return table.Bad("parameters", Table::Kind(item), "[[parameters]]");
      const std::string prefix = absl::StrCat("parameters[", manifest.parameters.size(), "].");
      MP_ASSIGN_OR_RETURN(ParameterSpec spec, ReadParameter(Table(*item.as_table(), path, prefix)));
      if (manifest.FindParameter(spec.name) != nullptr) {
        return table.Bad("parameters", absl::StrCat("\"", spec.name, "\" twice"), "each once");
      }
      manifest.parameters.push_back(std::move(spec));
    }
  }
  return manifest;
}

}  // namespace

std::string_view ToString(ParameterType type) {
  switch (type) {
    case ParameterType::kInteger:
      return "integer";
    case ParameterType::kReal:
      return "real";
    case ParameterType::kFlag:
      return "flag";
    case ParameterType::kText:
      break;
  }
  return "text";
}

std::string ValuesInWords(const ParameterSpec& spec) {
  const auto text = [&spec](double bound) {
    if (spec.type == ParameterType::kInteger) return absl::StrFormat("%.0f", bound);
    // The shortest text that means the number.
    char digits[64];
    return std::string(digits, std::to_chars(digits, digits + sizeof(digits), bound).ptr);
  };
  std::string words;
  switch (spec.type) {
    case ParameterType::kInteger:
      words = "an integer";
      break;
    case ParameterType::kReal:
      words = "a finite number";
      break;
    case ParameterType::kFlag:
      return "true or false";
    case ParameterType::kText:
      return "a text without NUL";
  }
  if (spec.minimum && spec.maximum) {
    return absl::StrCat(words, " from ", text(*spec.minimum), " to ", text(*spec.maximum));
  }
  if (spec.minimum) return absl::StrCat(words, ", ", text(*spec.minimum), " or more");
  if (spec.maximum) return absl::StrCat(words, ", ", text(*spec.maximum), " or less");
  return words;
}

std::vector<std::string> ParameterLines(const Manifest& manifest) {
  std::vector<std::string> lines;
  for (const ParameterSpec& spec : manifest.parameters) {
    lines.push_back(absl::StrCat(
        spec.name, " (", ValuesInWords(spec),
        spec.default_value ? absl::StrCat(", default \"", *spec.default_value, "\"") : "",
        "): ", spec.help));
  }
  return lines;
}

const ParameterSpec* Manifest::FindParameter(std::string_view wanted) const {
  for (const ParameterSpec& spec : parameters) {
    if (spec.name == wanted) return &spec;
  }
  return nullptr;
}

absl::StatusOr<Manifest> ReadManifest(const std::string& path) {
  // A pipe or a device could be read for ever.
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": found no file (a folder, a pipe or a device), expected a manifest"));
  }
  MP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  if (bytes.size() > 1 << 20) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": found ", bytes.size(),
                                                   " bytes, expected a manifest of at most 1 MiB"));
  }
  try {
    const toml::table root = toml::parse(bytes, path);
    return FromTable(root, path);
  } catch (const toml::parse_error& e) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", e.source().begin.line, ":", e.source().begin.column,
                     ": no valid TOML: ", border::OneLine(std::string_view(e.description()))));
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat(path, ": ", border::OneLine(e.what())));
  }
}

absl::Status CheckAbi(const Manifest& manifest) {
  if (manifest.abi_major != MERGEPLAN_ABI_MAJOR) {
    return absl::FailedPreconditionError(absl::StrCat(
        manifest.path, ": plugin ", manifest.name, " is for ABI ", manifest.abi_major, ".",
        manifest.abi_minor_needed, ", this host speaks ", MERGEPLAN_ABI_MAJOR, ".",
        MERGEPLAN_ABI_MINOR, "; get a build of the plugin for ABI ", MERGEPLAN_ABI_MAJOR));
  }
  if (manifest.abi_minor_needed > MERGEPLAN_ABI_MINOR) {
    return absl::FailedPreconditionError(
        absl::StrCat(manifest.path, ": plugin ", manifest.name, " needs ABI ", manifest.abi_major,
                     ".", manifest.abi_minor_needed, " or newer, this host speaks ",
                     MERGEPLAN_ABI_MAJOR, ".", MERGEPLAN_ABI_MINOR, "; update mergeplan"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, std::string>> CheckParameters(
    const Manifest& manifest, const std::map<std::string, std::string>& values) {
  std::map<std::string, std::string> out;
  for (const ParameterSpec& spec : manifest.parameters) {
    if (spec.default_value) out[spec.name] = *spec.default_value;
  }
  for (const auto& [name, value] : values) {
    const ParameterSpec* spec = manifest.FindParameter(name);
    if (spec == nullptr) {
      std::vector<std::string> names;
      for (const ParameterSpec& known : manifest.parameters) names.push_back(known.name);
      return absl::InvalidArgumentError(absl::StrCat(
          "plugin ", manifest.name, ": unknown parameter \"", border::OneLine(name), "\", ",
          names.empty() ? "it has none"
                        : absl::StrCat("expected one of ", absl::StrJoin(names, ", "))));
    }
    if (!Allows(*spec, value)) {
      return absl::InvalidArgumentError(absl::StrCat("plugin ", manifest.name, ": parameter ", name,
                                                     ": found \"", border::OneLine(value),
                                                     "\", expected ", ValuesInWords(*spec)));
    }
    out[name] = value;
  }
  return out;
}

std::vector<std::string> TeacherTraitNames(std::uint64_t traits) {
  std::vector<std::string> out;
  for (size_t k = 0; k < std::size(kTraits); ++k) {
    if ((traits >> k & 1) != 0) out.emplace_back(kTraits[k]);
  }
  return out;
}

absl::Status CheckTeacher(const Manifest& manifest, std::uint64_t teacher_gives) {
  const std::uint64_t missing = manifest.teacher_needs & ~teacher_gives;
  if (missing == 0) return absl::OkStatus();
  const auto words = [](std::uint64_t traits) {
    const std::vector<std::string> names = TeacherTraitNames(traits);
    return names.empty() ? std::string("nothing of the kind") : absl::StrJoin(names, ", ");
  };
  return absl::FailedPreconditionError(absl::StrCat(
      "plugin ", manifest.name, " needs a teacher with ", words(manifest.teacher_needs),
      "; this one has ", words(teacher_gives), " and lacks ", words(missing)));
}

}  // namespace mergeplan
