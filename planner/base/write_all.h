#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace mergeplan {

// Writes all of `bytes` to an open file, whatever it is, in as many turns as that takes. Errors say
// `what`, then the system's own words; a part of the bytes may be written then.
absl::Status WriteAll(int descriptor, std::string_view bytes, std::string_view what);

}  // namespace mergeplan
