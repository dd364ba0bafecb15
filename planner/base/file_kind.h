#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace mergeplan {

// For files that are given in the place of one another, all of them tables with a format.
//
// `kind`: the file's key of that name, empty where it has none; `has`: has it this key at its top?
// Gives what the file is, what is expected, where that comes from and what this one is for ("is a
// plan, expected a spectrum (…); …"), or nothing where it may well be of the kind `expected`
// ("spectrum", "mixture", "measured", "plan") or is of none that is known.
std::string OtherKind(std::string_view expected, std::string_view kind,
                      const std::function<bool(std::string_view key)>& has);

// What a file is, whatever is expected ("a plan"), or nothing where it is of no kind that is known.
std::string KnownKind(std::string_view kind, const std::function<bool(std::string_view key)>& has);

}  // namespace mergeplan
