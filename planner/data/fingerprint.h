#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace mergeplan {

// What tells whether an input of OpenSamples is the same as before: a file's hash; names, sizes and
// times of the files of a folder or a pattern.
absl::StatusOr<std::string> FingerprintOfInput(const std::string& input);

// The same without reading a large file whole: "quick:" and the hash of its size, its time of
// change and 64 pieces of 16 KiB spread over it (all of it where it is no larger). A file whose
// content was changed between those pieces, and whose size and time were then set back, is taken
// for the old one; one that was only touched, for a new one. What came in on standard input is
// hashed whole, since it has no time of its own.
absl::StatusOr<std::string> QuickFingerprintOfInput(const std::string& input);
// Is it one of those, which say nothing beside a hash of the content?
bool IsQuickFingerprint(std::string_view fingerprint);

}  // namespace mergeplan
