#include "adapters/network/try.h"

#include <new>

#include "absl/strings/match.h"

namespace mergeplan::network {

std::string FirstLine(const std::exception& error) {
  // A TorchScript error comes as a traceback of several lines whose last one is what happened.
  const std::string text = error.what();
  const auto begin = [&]() -> std::size_t {
    const std::size_t at = text.rfind("RuntimeError: ");
    return at == std::string::npos ? 0 : at;
  }();
  return text.substr(begin, text.find('\n', begin) - begin);
}

absl::Status FromException(const std::string& where, const std::exception& error) {
  const std::string text = absl::StrCat(where, ": ", FirstLine(error));
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      absl::StrContains(text, "out of memory") || absl::StrContains(text, "can't allocate")) {
    return absl::ResourceExhaustedError(text);
  }
  return absl::InvalidArgumentError(text);
}

}  // namespace mergeplan::network
