#include "planner/base/file_kind.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace mergeplan {
namespace {

struct Kind {
  std::string_view name;
  std::string_view called;
  std::string_view from;  // the command that writes it
  std::string_view use;   // what it is for
};

constexpr Kind kKinds[] = {
    {"spectrum", "a spectrum", "mergeplan analyze -o writes one",
     "mergeplan plan FILE makes a plan for it"},
    {"mixture", "a mixture", "mergeplan mixture fit -o writes one",
     "mergeplan distill --teacher mixture:FILE takes it"},
    {"measured", "measured tables", "mergeplan calibrate -o writes them",
     "mergeplan plan --measured FILE plans for them"},
    {"plan", "a plan", "mergeplan plan -o writes one", "mergeplan show prints a plan"},
};

const Kind* Find(std::string_view name) {
  const auto* at = std::find_if(std::begin(kKinds), std::end(kKinds),
                                [&](const Kind& kind) { return kind.name == name; });
  return at == std::end(kKinds) ? nullptr : at;
}

// Of a file with these keys.
const Kind* FindIn(std::string_view kind, const std::function<bool(std::string_view key)>& has) {
  // Plans have no key kind; these two have no other file.
  const bool plan = kind.empty() && (has("blocks") || has("certificate"));
  return plan ? Find("plan") : kind == "plan" ? nullptr : Find(kind);
}

}  // namespace

std::string OtherKind(std::string_view expected, std::string_view kind,
                      const std::function<bool(std::string_view key)>& has) {
  const Kind* found = FindIn(kind, has);
  const Kind* wanted = Find(expected);
  if (found == nullptr || wanted == nullptr || found == wanted) return "";
  return absl::StrCat("is ", std::string(found->called), ", expected ", std::string(wanted->called),
                      " (", std::string(wanted->from), "); ", std::string(found->use));
}

std::string KnownKind(std::string_view kind, const std::function<bool(std::string_view key)>& has) {
  const Kind* found = FindIn(kind, has);
  return found == nullptr ? "" : std::string(found->called);
}

}  // namespace mergeplan
