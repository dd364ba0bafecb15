#include <toml++/toml.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/plan/io/node.h"

namespace mergeplan::plan_io {
namespace {

// The parser itself refuses nesting beyond 256 levels, so recursion is safe.
Node Convert(const toml::node& from) {
  Node out;
  out.line = static_cast<int>(from.source().begin.line);
  if (const auto* table = from.as_table()) {
    // toml++ sorts by key; documents are read in the order of the file.
    std::vector<std::pair<toml::source_position, Node::Member>> members;
    members.reserve(table->size());
    for (const auto& [key, value] : *table) {
      members.emplace_back(key.source().begin,
                           Node::Member{std::string(key.str()), Convert(value)});
    }
    std::stable_sort(members.begin(), members.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    Node::Members sorted;
    sorted.reserve(members.size());
    for (auto& member : members) sorted.push_back(std::move(member.second));
    out.value = std::move(sorted);
  } else if (const auto* list = from.as_array()) {
    Node::Items items;
    items.reserve(list->size());
    for (const toml::node& item : *list) items.push_back(Convert(item));
    out.value = std::move(items);
  } else if (const auto* text = from.as_string()) {
    out.value = text->get();
  } else if (const auto* whole = from.as_integer()) {
    out.value = whole->get();
  } else if (const auto* number = from.as_floating_point()) {
    out.value = number->get();
  } else if (const auto* truth = from.as_boolean()) {
    out.value = truth->get();
  } else {
    out.value = Node::Date{};
  }
  return out;
}

}  // namespace

absl::StatusOr<Node> ParseToml(std::string_view text, const std::string& file) {
  try {
    const toml::table table = toml::parse(text);
    return Convert(table);
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    return absl::InvalidArgumentError(absl::StrCat(
        file, ":", at.line, ":", at.column, ": no valid TOML: ", std::string(error.description())));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": cannot be read: ", error.what()));
  }
}

}  // namespace mergeplan::plan_io
