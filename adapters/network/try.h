#pragma once

// Inside this folder only: LibTorch throws, we do not.

#include <exception>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace mergeplan::network {

// The first line of what an exception says (LibTorch adds where in its own source it was).
std::string FirstLine(const std::exception& error);

// Runs `body`, which returns a Status or StatusOr, and turns an exception into INVALID_ARGUMENT
// that begins with `where`, out of memory into RESOURCE_EXHAUSTED.
absl::Status FromException(const std::string& where, const std::exception& error);
template <typename Body>
auto Try(const std::string& where, Body&& body) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::exception& error) {
    return FromException(where, error);
  }
}

}  // namespace mergeplan::network
