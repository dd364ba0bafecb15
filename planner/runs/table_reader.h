#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan {

// Parses a TOML file; an error names the file and the line.
absl::StatusOr<toml::table> ParseTomlFile(const std::string& path);

// Takes keys out of a table one by one, so that what is left is unknown. Errors name the file and
// the key, which begins with `prefix` ("merge."). The table must outlive this object.
class TableReader {
 public:
  TableReader(std::string file, const toml::table& table, std::string prefix = "")
      : file_(std::move(file)), table_(table), prefix_(std::move(prefix)) {}

  absl::Status Text(const char* key, std::string* out);
  absl::Status Integer(const char* key, std::int64_t least, std::int64_t most, std::int64_t* out);
  // The same from 1 on, or 0 where the key is missing.
  absl::Status OptionalCount(const char* key, int* out);
  // Finite.
  absl::Status Number(const char* key, double* out);
  // The same, or NaN where the key is missing.
  absl::Status OptionalNumber(const char* key, double* out);
  // A table of texts.
  absl::Status Texts(const char* key, std::map<std::string, std::string>* out);
  absl::StatusOr<const toml::table*> Table(const char* key);
  // An array of tables, which may be missing or empty.
  absl::StatusOr<std::vector<const toml::table*>> Tables(const char* key);
  absl::Status NothingElse() const;

  absl::Status Error(const std::string& key, const std::string& what) const;

 private:
  toml::node_view<const toml::node> Find(const char* key);

  std::string file_;
  const toml::table& table_;
  std::string prefix_;
  std::vector<std::string> seen_;
};

}  // namespace mergeplan
