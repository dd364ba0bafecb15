#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace mergeplan {

// Minutes of work should not end at a name that cannot be written: every one of `outputs` (-o) must
// end in one of `endings`, stand there once, and lie in a folder that can be written. Misuse for
// names, FAILED_PRECONDITION for folders.
absl::Status CheckOutputFiles(const std::vector<std::string>& outputs,
                              const std::vector<std::string>& endings);

}  // namespace mergeplan
