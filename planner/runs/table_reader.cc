#include "planner/runs/table_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan {

absl::StatusOr<toml::table> ParseTomlFile(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": line ", error.source().begin.line, ": ",
                                                   std::string(error.description()),
                                                   "; expected a TOML file"));
  }
}

toml::node_view<const toml::node> TableReader::Find(const char* key) {
  seen_.emplace_back(key);
  return table_[key];
}

absl::Status TableReader::Error(const std::string& key, const std::string& what) const {
  return absl::InvalidArgumentError(absl::StrCat(
      file_, ": key '", prefix_, key, "': ", table_.contains(key) ? "" : "is missing, ", what));
}

absl::Status TableReader::Text(const char* key, std::string* out) {
  const toml::node_view<const toml::node> node = Find(key);
  if (!node.is_string()) return Error(key, "expected a text");
  *out = node.ref<std::string>();
  return absl::OkStatus();
}

absl::Status TableReader::Integer(const char* key, std::int64_t least, std::int64_t most,
                                  std::int64_t* out) {
  const toml::node_view<const toml::node> node = Find(key);
  if (!node.is_integer()) return Error(key, "expected a whole number");
  *out = node.ref<std::int64_t>();
  if (*out < least || *out > most) {
    return Error(key, absl::StrCat("is ", *out, ", expected ", least, "..", most));
  }
  return absl::OkStatus();
}

absl::Status TableReader::Number(const char* key, double* out) {
  const toml::node_view<const toml::node> node = Find(key);
  if (!node.is_number()) return Error(key, "expected a number");
  *out = *node.value<double>();
  if (!std::isfinite(*out))
    return Error(key, absl::StrCat("is ", *out, ", expected a finite number"));
  return absl::OkStatus();
}

absl::Status TableReader::OptionalCount(const char* key, int* out) {
  *out = 0;
  if (!table_.contains(key)) return absl::OkStatus();
  std::int64_t count = 0;
  MP_RETURN_IF_ERROR(Integer(key, 1, std::numeric_limits<int>::max(), &count));
  *out = static_cast<int>(count);
  return absl::OkStatus();
}

absl::Status TableReader::OptionalNumber(const char* key, double* out) {
  if (table_.contains(key)) return Number(key, out);
  *out = std::numeric_limits<double>::quiet_NaN();
  return absl::OkStatus();
}

absl::Status TableReader::Texts(const char* key, std::map<std::string, std::string>* out) {
  MP_ASSIGN_OR_RETURN(const toml::table* table, Table(key));
  for (const auto& [name, value] : *table) {
    if (!value.is_string())
      return Error(key, absl::StrCat("'", std::string(name.str()), "': expected a text"));
    (*out)[std::string(name.str())] = value.ref<std::string>();
  }
  return absl::OkStatus();
}

absl::StatusOr<const toml::table*> TableReader::Table(const char* key) {
  const toml::node_view<const toml::node> node = Find(key);
  if (!node.is_table()) return Error(key, "expected a table");
  return node.as_table();
}

absl::StatusOr<std::vector<const toml::table*>> TableReader::Tables(const char* key) {
  std::vector<const toml::table*> out;
  const toml::node_view<const toml::node> node = Find(key);
  if (!node) return out;
  if (!node.is_array()) return Error(key, "expected an array of tables");
  for (const toml::node& item : *node.as_array()) {
    if (!item.is_table()) return Error(key, "expected an array of tables");
    out.push_back(item.as_table());
  }
  return out;
}

absl::Status TableReader::NothingElse() const {
  for (const auto& [name, value] : table_) {
    const std::string key(name.str());
    if (std::find(seen_.begin(), seen_.end(), key) == seen_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(file_, ": unknown key '", prefix_, key, "'; remove it"));
    }
  }
  return absl::OkStatus();
}

}  // namespace mergeplan
