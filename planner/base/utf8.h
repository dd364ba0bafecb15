#pragma once

#include <string>
#include <string_view>

namespace mergeplan {

// Is every byte part of a well-formed UTF-8 sequence (Unicode 15, table 3-7: no overlong forms, no
// surrogates, nothing beyond U+10FFFF)? Paths on Linux need not be; TOML, JSON and HTML must be.
bool IsUtf8(std::string_view text);

// The same text where it is UTF-8; else every byte that is not stands as U+FFFD.
std::string ReplaceInvalidUtf8(std::string_view text);

}  // namespace mergeplan
