#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "planner/data/samples.h"

namespace mergeplan {

// A folder of latents that `mergeplan encode` wrote: part-000000.safetensors and so on, and
// latents.toml, which says how many samples they hold together.

// Does the folder hold latents.toml, or encode.toml, which stands there before anything is encoded?
bool IsPartsFolder(const std::string& path);

// Samples of all parts, one behind the other; the tensor `latents` unless `options.array` names
// another. Its size is known, and Skip does not read what it passes over. FAILED_PRECONDITION for a
// folder that is not complete; DATA_LOSS where the parts hold another number of samples than
// latents.toml says; errors of OpenSamples.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenPartsFolder(const std::string& path,
                                                              const SamplesOptions& options);

}  // namespace mergeplan
