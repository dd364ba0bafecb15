#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/data/samples.h"

namespace mergeplan {

// The files that match a pattern of the shell, sorted; NOT_FOUND where none does.
absl::StatusOr<std::vector<std::string>> FilesLike(const std::string& pattern);

struct FileOfSamples {
  std::string path;
  std::optional<std::int64_t> samples;  // where it is known without reading them
};

// The samples of one or more files, one file behind the other; all of one shape, and all pixels or
// none. Files whose number of samples is not given are asked for it, by opening them. Where all are
// known so is the whole, and files are passed over without being opened. `advice` ends errors about
// files that differ.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenFiles(std::vector<FileOfSamples> files,
                                                        const SamplesOptions& options,
                                                        const std::string& advice = "");

// Those of the files that match a pattern.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenGlob(const std::string& pattern,
                                                       const SamplesOptions& options);

}  // namespace mergeplan
