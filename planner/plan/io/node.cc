#include "planner/plan/io/node.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace mergeplan::plan_io {
namespace {

// Levenshtein's distance, for "did you mean". Keys are short.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, change});
    }
  }
  return row.back();
}

std::string Joined(std::string_view prefix, std::string_view key) {
  std::string out(prefix);
  if (!out.empty()) out += '.';
  out += key;
  return out;
}

}  // namespace

std::string_view Node::Kind() const {
  static constexpr std::string_view kKinds[] = {"null",     "a truth value", "a whole number",
                                                "a number", "a text",        "a date",
                                                "a list",   "a table"};
  return kKinds[value.index()];
}

const Node::Members* Node::table() const { return std::get_if<Members>(&value); }

const Node::Items* Node::list() const { return std::get_if<Items>(&value); }

const Node* Node::Find(std::string_view key) const {
  const Members* members = table();
  if (members == nullptr) return nullptr;
  for (const auto& [name, node] : *members) {
    if (name == key) return &node;
  }
  return nullptr;
}

absl::Status NodeReader::Error(const Node* at, std::string_view key,
                               std::string_view message) const {
  std::string out = file_;
  if (at != nullptr && at->line > 0) absl::StrAppend(&out, ":", at->line);
  out += ": ";
  if (!key.empty()) absl::StrAppend(&out, std::string(key), ": ");
  out += message;
  return absl::InvalidArgumentError(out);
}

absl::Status NodeReader::WrongType(const Node& node, std::string_view key,
                                   std::string_view expected) const {
  return Error(&node, key,
               absl::StrCat("is ", std::string(node.Kind()), ", expected ", std::string(expected)));
}

absl::Status NodeReader::CheckKeys(const Node& table, std::string_view prefix,
                                   absl::Span<const std::string_view> known) const {
  for (const Node::Member& member : *table.table()) {
    const std::string& key = member.key;
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string message = "unknown key";
    const std::string_view likest =
        *std::min_element(known.begin(), known.end(), [&](std::string_view a, std::string_view b) {
          return Distance(a, key) < Distance(b, key);
        });
    if (Distance(likest, key) <= 1 + key.size() / 4) {
      absl::StrAppend(&message, "; did you mean \"", std::string(likest), "\"?");
    } else {
      absl::StrAppend(&message, "; expected one of");
      for (const std::string_view word : known) absl::StrAppend(&message, " ", std::string(word));
    }
    return Error(&member.node, Joined(prefix, key), message);
  }
  return absl::OkStatus();
}

absl::StatusOr<const Node*> NodeReader::Require(const Node& table, std::string_view prefix,
                                                std::string_view key) const {
  const Node* found = table.Find(key);
  if (found == nullptr) {
    return Error(prefix.empty() ? nullptr : &table, Joined(prefix, key), "the key is missing");
  }
  return found;
}

absl::StatusOr<double> NodeReader::Number(const Node& node, std::string_view key) const {
  if (const auto* whole = std::get_if<std::int64_t>(&node.value)) {
    return static_cast<double>(*whole);
  }
  const auto* number = std::get_if<double>(&node.value);
  if (number == nullptr) return WrongType(node, key, "a number");
  if (!std::isfinite(*number)) {
    return Error(&node, key, absl::StrCat("is ", *number, ", expected a finite number"));
  }
  return *number;
}

absl::StatusOr<std::int64_t> NodeReader::Integer(const Node& node, std::string_view key,
                                                 std::int64_t least, std::int64_t most) const {
  const auto* whole = std::get_if<std::int64_t>(&node.value);
  if (whole == nullptr) return WrongType(node, key, "a whole number");
  if (*whole < least || *whole > most) {
    return Error(&node, key, absl::StrCat("is ", *whole, ", expected ", least, "..", most));
  }
  return *whole;
}

absl::StatusOr<std::string> NodeReader::String(const Node& node, std::string_view key) const {
  const auto* text = std::get_if<std::string>(&node.value);
  if (text == nullptr) return WrongType(node, key, "a text in quotes");
  return *text;
}

absl::StatusOr<std::vector<double>> NodeReader::Numbers(const Node& node,
                                                        std::string_view key) const {
  const Node::Items* items = node.list();
  if (items == nullptr) return WrongType(node, key, "a list of numbers");
  std::vector<double> out;
  out.reserve(items->size());
  for (const Node& item : *items) {
    const bool plain =
        std::holds_alternative<std::int64_t>(item.value) ||
        (std::holds_alternative<double>(item.value) && std::isfinite(std::get<double>(item.value)));
    if (!plain) {  // the key is only put together where it is needed
      MP_RETURN_IF_ERROR(
          Number(item, absl::StrCat(std::string(key), "[", out.size(), "]")).status());
    }
    MP_ASSIGN_OR_RETURN(const double number, Number(item, key));
    out.push_back(number);
  }
  return out;
}

absl::Status NodeReader::ExpectList(const Node& node, std::string_view key) const {
  return node.list() != nullptr ? absl::OkStatus() : WrongType(node, key, "a list");
}

absl::Status NodeReader::ExpectTable(const Node& node, std::string_view key) const {
  return node.table() != nullptr ? absl::OkStatus() : WrongType(node, key, "a table");
}

}  // namespace mergeplan::plan_io
