#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mergeplan::plan_io {

// The largest number of a file that is kept as an int.
inline constexpr std::int64_t kMostInt = std::numeric_limits<int>::max();

// The namespace plan_io is what the files of this folder share; nothing else includes these
// headers.

// What a TOML or JSON file holds, with lines: the common form from which documents are read. A
// value of a date or time (TOML) is kept as its kind only; no document has one.
struct Node {
  struct Date {};
  struct Member;  // a key with its node, see below
  using Items = std::vector<Node>;
  using Members = std::vector<Member>;  // in the order of the file

  std::variant<std::monostate, bool, std::int64_t, double, std::string, Date, Items, Members> value;
  int line = 0;  // from 1; 0 where unknown

  // "a table", "a whole number", …: for errors.
  std::string_view Kind() const;
  // The table or list that this is, or nullptr.
  const Members* table() const;
  const Items* list() const;
  // The member with that key, or nullptr. O(members).
  const Node* Find(std::string_view key) const;
};

struct Node::Member {
  std::string key;
  Node node;
};

// Parse a whole file. Errors are INVALID_ARGUMENT and begin "FILE:LINE:COLUMN:". `file` is only
// named. Both refuse a key that is given twice and nesting deeper than kMaxDepth levels (toml++
// itself: 256).
inline constexpr int kMaxDepth = 264;  // the JSON tree of BOOT over 128 steps has 257
absl::StatusOr<Node> ParseToml(std::string_view text, const std::string& file);
absl::StatusOr<Node> ParseJson(std::string_view text, const std::string& file);

// Typed access with errors that say where: "FILE:LINE: key: what was found, what was expected".
class NodeReader {
 public:
  explicit NodeReader(std::string file) : file_(std::move(file)) {}

  const std::string& file() const { return file_; }
  absl::Status Error(const Node* at, std::string_view key, std::string_view message) const;

  // Every member of the table is one of `known`; else the error names the stranger and the known
  // key that is most like it.
  absl::Status CheckKeys(const Node& table, std::string_view prefix,
                         absl::Span<const std::string_view> known) const;
  absl::StatusOr<const Node*> Require(const Node& table, std::string_view prefix,
                                      std::string_view key) const;

  // Finite; whole numbers count as numbers.
  absl::StatusOr<double> Number(const Node& node, std::string_view key) const;
  absl::StatusOr<std::int64_t> Integer(const Node& node, std::string_view key, std::int64_t least,
                                       std::int64_t most) const;
  absl::StatusOr<std::string> String(const Node& node, std::string_view key) const;
  absl::StatusOr<std::vector<double>> Numbers(const Node& node, std::string_view key) const;
  // A list, a table.
  absl::Status ExpectList(const Node& node, std::string_view key) const;
  absl::Status ExpectTable(const Node& node, std::string_view key) const;

 private:
  absl::Status WrongType(const Node& node, std::string_view key, std::string_view expected) const;

  std::string file_;
};

}  // namespace mergeplan::plan_io
