#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace mergeplan {

// What tells whether an input of OpenSamples is the same as before: a file's hash; names, sizes and
// times of the files of a folder or a pattern.
absl::StatusOr<std::string> FingerprintOfInput(const std::string& input);

}  // namespace mergeplan
