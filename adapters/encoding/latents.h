#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "planner/data/samples.h"

namespace mergeplan::encoding {

// Latents that somebody wants to decode, from a file or a folder.
struct LatentInput {
  std::unique_ptr<SampleSource> source;
  std::int64_t size = 0;  // samples
  // What the folder of `mergeplan encode` says of them; empty and false for anything else.
  std::string vae_sha256;
  bool raw = false;  // as the encoder gives them
};

// `path` as OpenSamples reads it. Without `array` it is the only one that there is, or `latents`,
// or `samples`, which `mergeplan sample` writes. Where the format does not say how many samples it
// has, they are counted by reading them once. Errors of OpenSamples.
absl::StatusOr<LatentInput> OpenLatents(const std::string& path, const std::string& array);

}  // namespace mergeplan::encoding
