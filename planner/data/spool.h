#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace mergeplan {

// Puts all of standard input into an unnamed file in TMPDIR, which goes with the process, and
// returns a path that it can be opened by as often as needed: every reader wants to see its data
// twice, and some formats have their directory at the end. A second call returns the same path.
// FAILED_PRECONDITION and the system's errors, with the folder named.
absl::StatusOr<std::string> SpoolStandardInput();

// From now on messages call the file at `path`, which nobody has asked for by that name, `name`.
void NameSpool(const std::string& path, const std::string& name);

// `message` with those names ("standard input") in place of the paths.
std::string NameSpooled(std::string message);

}  // namespace mergeplan
