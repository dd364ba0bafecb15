#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace mergeplan {

// Minutes of work should not end at a name that cannot be written: every one of `outputs` (-o) must
// end in one of `endings`, stand there once, however it is spelt, and lie in a folder that can be
// written. None may be one of `inputs`, or lie in one that is a folder, whose data it would change.
// Misuse for names, FAILED_PRECONDITION for folders.
absl::Status CheckOutputFiles(const std::vector<std::string>& outputs,
                              const std::vector<std::string>& endings,
                              const std::vector<std::string>& inputs = {});

// A folder that is to be made, or is empty but for what interrupted writers left. Misuse, naming
// what it holds.
absl::Status CheckNewFolder(const std::string& path);

}  // namespace mergeplan
