#include "planner/operators/terms.h"

#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mergeplan {
namespace {

constexpr std::array<std::pair<Init, std::string_view>, 4> kInits = {
    {{Init::kChild, "child"},
     {Init::kTeacher, "teacher"},
     {Init::kJump, "jump"},
     {Init::kChildJump, "child-jump"}}};
constexpr std::array<std::pair<Reference, std::string_view>, 3> kReferences = {
    {{Reference::kSurrogate, "surrogate"},
     {Reference::kTeacher, "teacher"},
     {Reference::kData, "data"}}};
constexpr std::array<std::pair<Space, std::string_view>, 2> kSpaces = {
    {{Space::kNary, "nary"}, {Space::kBinary, "binary"}}};

template <typename Table, typename Value>
std::string_view WordOf(const Table& table, Value value) {
  for (const auto& [v, word] : table) {
    if (v == value) return word;
  }
  return "";
}

template <typename Table>
auto ValueOf(const Table& table, std::string_view what, std::string_view word)
    -> absl::StatusOr<typename Table::value_type::first_type> {
  std::string known;
  for (const auto& [v, w] : table) {
    if (w == word) return v;
    absl::StrAppend(&known, known.empty() ? "" : ", ", std::string(w));
  }
  return absl::InvalidArgumentError(absl::StrCat(std::string(what), ": unknown word \"",
                                                 std::string(word), "\", expected one of ", known));
}

}  // namespace

std::string_view ToString(Init init) { return WordOf(kInits, init); }
std::string_view ToString(Reference reference) { return WordOf(kReferences, reference); }
std::string_view ToString(Space space) { return WordOf(kSpaces, space); }
absl::StatusOr<Init> ParseInit(std::string_view word) { return ValueOf(kInits, "init", word); }
absl::StatusOr<Reference> ParseReference(std::string_view word) {
  return ValueOf(kReferences, "reference", word);
}
absl::StatusOr<Space> ParseSpace(std::string_view word) { return ValueOf(kSpaces, "space", word); }

}  // namespace mergeplan
