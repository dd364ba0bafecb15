#include "planner/schedule/json_text.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace mergeplan {
namespace {

absl::Status ErrorAt(std::string_view text, size_t offset, const std::string& path,
                     const std::string& what) {
  offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
  return absl::InvalidArgumentError(absl::StrFormat("%s: no valid JSON at line %d, column %d: %s",
                                                    path, line, offset - start + 1, what));
}

// Overwrites the words Infinity and -Infinity outside of strings by numbers of the same length, so
// that positions stay right.
absl::Status ReplacePythonNumbers(std::string& text, const std::string& path) {
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    if (c == '"') {
      in_string = true;
    } else if (c == 'I' && text.compare(i, 8, "Infinity") == 0) {
      text.replace(i, 8, "1.79e308");
    } else if (c == 'N' && text.compare(i, 3, "NaN") == 0) {
      return ErrorAt(text, i, path, "found NaN, expected a number");
    }
  }
  return absl::OkStatus();
}

// "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error …" -> "syntax
// error …".
std::string Reason(const std::string& what) {
  const size_t bracket = what.find("] ");
  const size_t colon = what.find(": ", bracket == what.npos ? 0 : bracket);
  return colon == what.npos ? what : what.substr(colon + 2);
}

}  // namespace

absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, const std::string& path) {
  std::string copy(text);
  if (absl::Status status = ReplacePythonNumbers(copy, path); !status.ok()) return status;
  try {
    return nlohmann::json::parse(copy);
  } catch (const nlohmann::json::parse_error& error) {
    // `byte` counts the characters read, so it points one past the one that did not fit.
    return ErrorAt(text, error.byte > 0 ? error.byte - 1 : 0, path, Reason(error.what()));
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: no valid JSON: %s", path, Reason(error.what())));
  }
}

}  // namespace mergeplan
