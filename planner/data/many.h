#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/data/samples.h"

namespace mergeplan {

// The files that match a pattern of the shell, sorted; NOT_FOUND where none does.
absl::StatusOr<std::vector<std::string>> FilesLike(const std::string& pattern);

// Their samples, one file behind the other; all of one shape, and all pixels or none.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenGlob(const std::string& pattern,
                                                       const SamplesOptions& options);

}  // namespace mergeplan
